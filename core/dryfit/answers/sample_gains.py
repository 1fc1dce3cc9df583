"""Whether one quantized network is better than another: by the gains of single samples, and how sure they are.

Few samples judge, and many networks are compared on the same ones. The best of many is then often better there by
chance. So a network replaces another only if its mean gain per sample exceeds zero by as many standard errors as chance
reaches in one search out of twenty, counting how many networks the search tried.

A sample counts by its own SQNR in dB, whatever the energy of its outputs. Probabilities count by their logits. The
energy of a softmax is that of the one or two classes that the network is sure of, and tells little about single
samples; its logarithms less their mean are the logits before it but for a constant. The energy of a detector's sigmoid
is that of the few cells that see an object, and of none in samples without objects.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.network import Network
from dryfit.network.tensor import Array

LEAST_PROBABILITY = 2.0**-24
"""What is less counts as this: the smallest positive FP16, which devices compute probabilities in."""
LEAST_DOUBT = 2.0**-11
"""What is nearer to 1 counts as this far from it: the distance of the FP16 values next below 1 is 2^-11."""
LARGEST_DB = 150.0
"""More than FP32 tells; what does not differ counts as this."""
CHANCE = 0.05
"""Chance that a search takes a network that is no better. Our choice."""
GAIN_DB = 0.05
"""A smaller mean gain is not worth another file. Our choice."""

REPORTED_ONE_IN, MOST_REPORTED = 5, 16
SELECTING_ONE_IN, MOST_SELECTING = 3, 32
FEWEST_SAMPLES = 5
"""Two to learn from, two to select by, one to report."""


@frozen(eq=False)
class Verdict:
    """What a quantized network is worth on some samples.

    Attributes:
        sqnr_db: SQNR of the worst output over all samples, in dB.
        metric: the user's metric.
        by_sample: SQNR of each sample's worst output in dB, with logits in the place of probabilities, the mean over
            it and its copies: float64[N].
        metric_error: standard error of the metric, by the jackknife.
        logit_db: SQNR like `sqnr_db`, with logits in the place of probabilities, over copies too.
        copies_metric: the user's metric over samples and copies.
        copies_error: its standard error, by the jackknife over samples with their copies.
    """

    sqnr_db: float
    metric: float
    by_sample: Array
    metric_error: float = 0.0
    logit_db: float = attrs.field(default=attrs.Factory(lambda self: self.sqnr_db, takes_self=True))
    copies_metric: float = attrs.field(default=attrs.Factory(lambda self: self.metric, takes_self=True))
    copies_error: float = attrs.field(default=attrs.Factory(lambda self: self.metric_error, takes_self=True))

    @property
    def score(self) -> float:
        """Mean of the samples' SQNR in dB."""
        return float(self.by_sample.mean())

    def reaches(self, wanted: float, *, is_share: bool) -> bool:
        """Return whether the metric reaches a value, and few samples do not reach it by chance.

        The metric less its error, at the 5 % of `CHANCE`, must. Of a share of samples, one more that is right and one
        that is wrong are counted too (Laplace's rule of succession), since the error of 100 % is none.

        Args:
            wanted: the value.
            is_share: whether the metric is a share of the samples, in percent.
        """
        count = len(self.by_sample)
        sure = self.metric
        if self.metric_error:
            sure -= self.metric_error * student_quantile(1 - CHANCE, count - 1)
        if is_share:
            sure = min(sure, (self.metric * count + 100) / (count + 2))
        return sure >= wanted


def jackknife_error(without: Sequence[float]) -> float:
    """Return the standard error of an estimate, from what it is without each of the samples; 0 if one is infinite."""
    values = np.asarray(without, np.float64)
    if len(values) < 2 or not np.isfinite(values).all():
        return 0.0
    return float(np.sqrt((len(values) - 1) * values.var()))


@frozen
class Gain:
    """How much better one network is than another, on the same samples.

    Attributes:
        mean: mean gain per sample in dB.
        error: its standard error in dB; infinite for a single sample.
        needed: the mean that would convince, in dB.
    """

    mean: float
    error: float
    needed: float

    @property
    def is_convincing(self) -> bool:
        """Whether it is more than chance."""
        return self.mean > max(self.needed, GAIN_DB)


def gain(before: Verdict, after: Verdict, tries: int = 1) -> Gain:
    """Return the gain of one network over another.

    Args:
        before: verdict on the network to beat.
        after: verdict on the other, on the same samples.
        tries: number of networks that this one is the best of.
    """
    gains = after.by_sample - before.by_sample
    count = len(gains)
    if count < 2:
        return Gain(float(gains.mean()), float("inf"), float("inf"))
    error = float(gains.std(ddof=1) / np.sqrt(count))
    return Gain(float(gains.mean()), error, error * student_quantile(1 - CHANCE / tries, count - 1))


def student_quantile(probability: float, freedom: int) -> float:
    """Return an approximate quantile of Student's t distribution, within 2 % from four degrees of freedom.

    With fewer degrees it is too small, by a tenth for two. Source: Abramowitz and Stegun, Handbook of Mathematical
    Functions, 26.7.5, first three terms.
    """
    z = NormalDist().inv_cdf(probability)
    second = (z**3 + z) / (4 * freedom)
    third = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + second + third


class Probability(enum.Enum):
    """What gives an output that is made of probabilities."""

    SOFTMAX = enum.auto()
    SIGMOID = enum.auto()


def probability_outputs(network: Network) -> dict[str, Probability]:
    """Return the outputs that a softmax or a sigmoid gives, also where only moves of values follow it, by name."""
    givers: dict[str, Layer] = {tensor.name: layer for layer in network.layers for tensor in layer.outputs}
    found = {}
    for output in network.outputs:
        giver = givers.get(output.name)
        while giver is not None and giver.only_moves_values and giver.inputs[0] is not None:
            giver = givers.get(giver.inputs[0].name)
        if giver is not None and giver.kind == "softmax":
            found[output.name] = Probability.SOFTMAX
        elif isinstance(giver, Activation) and giver.activation_type is ActivationType.SIGMOID:
            found[output.name] = Probability.SIGMOID
    return found


def signal_and_noise(exact: Array, found: Array, kind: Probability | None) -> tuple[float, float]:
    """Return the energies of an output of a sample and of its error, in logits for probabilities.

    Args:
        exact: FP32 values.
        found: values to judge.
        kind: what gives the output; None for others.
    """
    real, other = exact.astype(np.float64), found.astype(np.float64)
    if kind is not None:
        real, other = _logits(real, kind), _logits(other, kind)
    noise = float(((other - real) ** 2).sum())
    # A mean tells how rare objects are; what differs from it tells where they are.
    signal = real if kind is None else real - real.mean()
    return float((signal**2).sum()), noise


def _logits(values: Array, kind: Probability) -> Array:
    logarithms = np.log(np.maximum(values, LEAST_PROBABILITY))
    if kind is Probability.SOFTMAX:
        return np.asarray(logarithms - logarithms.mean())
    return np.asarray(logarithms - np.log(np.maximum(1 - values, LEAST_DOUBT)))


def by_sample_db(
    exact: Sequence[Mapping[str, Array]],
    found: Sequence[Mapping[str, Array]],
    probabilities: Mapping[str, Probability],
) -> Array:
    """Return the SQNR of each sample's worst output in dB: float64[N].

    Args:
        exact: FP32 outputs of each sample.
        found: outputs to judge, in the same order.
        probabilities: what gives the outputs that count by their logits, by name.
    """
    worst = np.full(len(exact), LARGEST_DB)
    for index, (one, other) in enumerate(zip(exact, found, strict=True)):
        for name in one:
            signal, noise = signal_and_noise(one[name], other[name], probabilities.get(name))
            if noise:
                worst[index] = min(worst[index], _decibels(signal, noise))
    return worst


def whole_db(
    exact: Sequence[Mapping[str, Array]],
    found: Sequence[Mapping[str, Array]],
    probabilities: Mapping[str, Probability],
) -> float:
    """Return the SQNR of the worst output over all samples in dB, with logits in the place of probabilities."""
    worst = np.inf
    for name in exact[0]:
        pairs = zip(exact, found, strict=True)
        energies = [signal_and_noise(one[name], other[name], probabilities.get(name)) for one, other in pairs]
        signal, noise = np.sum(energies, axis=0)
        if noise:
            worst = min(worst, _decibels(signal, noise))
    return float(worst)


def _decibels(signal: float, noise: float) -> float:
    return float(10 * np.log10(max(signal / noise, 10 ** (-LARGEST_DB / 10))))


def spread_evenly(count: int, total: int) -> set[int]:
    """Return `count` of the indices below `total`, spread evenly: what is sorted is met in all its kinds."""
    return {(2 * index + 1) * total // (2 * count) for index in range(count)}


@frozen
class SampleParts:
    """Names of samples, in parts that have none in common.

    Attributes:
        learning: ranges, factors and corrections are found from these.
        selecting: steps are taken or left by these.
        reporting: these judge the result, once; nothing was chosen by them.
    """

    learning: Sequence[str]
    selecting: Sequence[str]
    reporting: Sequence[str]


def divided(names: Sequence[str]) -> SampleParts:
    """Return the samples in parts, each spread evenly.

    One in five reports, at most `MOST_REPORTED`; of the others one in three selects, at most `MOST_SELECTING`.

    Raises:
        CalibrationError: There are too few samples.
    """
    if len(names) < FEWEST_SAMPLES:
        raise CalibrationError(
            "Tuning requires at least five samples: to learn from, to select by, and to report with",
            found=len(names),
            remedy="Pass more samples; fifty or more distinguish a gain from chance",
        )
    reporting = spread_evenly(min(len(names) // REPORTED_ONE_IN, MOST_REPORTED), len(names))
    others = [name for index, name in enumerate(names) if index not in reporting]
    selecting = spread_evenly(min(max(len(others) // SELECTING_ONE_IN, 2), MOST_SELECTING), len(others))
    return SampleParts(
        [name for index, name in enumerate(others) if index not in selecting],
        [name for index, name in enumerate(others) if index in selecting],
        [name for index, name in enumerate(names) if index in reporting],
    )
