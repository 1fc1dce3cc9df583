"""What it costs an output when one tensor of a network is rounded to INT8, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import numpy as np

import dryfit
from dryfit.network.copying import copy_network
from dryfit.quantization.calibration_cache import CalibrationCache
from measuring.accuracy import BUILDS, Measured, measured, sqnr
from measuring.accuracy_cases import Pictures

NUM_PICTURES = 2
"""How many arrays are shown: what costs most is known from few."""


@attrs.frozen
class RoundedTensor:
    """One tensor.

    Attributes:
        tensor: its name.
        threshold: largest magnitude that its scale holds.
        output: name of the output that suffers most.
        sqnr: of that output, in dB.
    """

    tensor: str
    threshold: float
    output: str
    sqnr: float


def rounded_tensors(
    network: dryfit.Network, pictures: Pictures, cache: CalibrationCache, names: Iterable[str]
) -> Iterator[RoundedTensor]:
    """Each of these tensors alone, rounded with its scale of a cache; outputs that stay equal are no loss."""
    few = attrs.evolve(pictures, judged=pictures.judged[:NUM_PICTURES])
    reference = measured(network, BUILDS["FP32"], few)
    for name in names:
        scale = cache.scales[name]
        found = measured(with_rounding(network, name, scale), BUILDS["FP32"], few)
        worst, noise = least(reference, found)
        yield RoundedTensor(name, 127 * scale, worst, noise)


def least(reference: Measured, found: Measured) -> tuple[str, float]:
    """The output with the least SQNR, and that."""
    noises = {output: sqnr(values, found.answers[output]) for output, values in reference.answers.items()}
    worst = min(noises, key=lambda output: noises[output])
    return worst, noises[worst]


def with_rounding(network: dryfit.Network, name: str, scale: float) -> dryfit.Network:
    """A copy in which all readers of a tensor get it quantized and dequantized."""
    rounded: list[tuple[dryfit.Tensor, dryfit.Tensor]] = []

    def add(tensor: dryfit.Tensor) -> None:
        if tensor.name == name:
            owner = tensor.network
            step = owner.add_constant((), np.array(scale, np.float32)).get_output(0)
            whole = owner.add_quantize(tensor, step).get_output(0)
            rounded.append((tensor, owner.add_dequantize(whole, step, tensor.dtype).get_output(0)))

    copy = copy_network(network, add)
    for tensor, other in rounded:
        for layer, index in list(tensor.consumers):
            if layer.kind != "quantize":
                layer.set_input(index, other)
    copy.refresh_shapes()
    return copy
