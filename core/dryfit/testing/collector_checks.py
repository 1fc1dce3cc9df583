"""Checks of a calibrator's collector: orders, parts, bytes, and non-finite values.

Each check returns the problems, one sentence per problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dryfit.errors import CalibrationError, DryfitError
from dryfit.network.tensor import Array
from dryfit.quantization.calibrator import Calibrator
from dryfit.quantization.collector import Collector

TENSOR = "tensor under test"
Named = Sequence[tuple[str, Array]]
"""Samples with their names."""


def named(samples: Iterable[Array]) -> Named:
    """Return samples with the names that the checks assign; the arrays are read-only."""
    frozen = []
    for index, sample in enumerate(samples):
        copy = sample.copy()
        copy.flags.writeable = False
        frozen.append((f"sample {index}", copy))
    return frozen


def collected(calibrator: Calibrator, samples: Named) -> Collector:
    """Return a collector that has processed the samples."""
    collector = calibrator.collector(TENSOR)
    for name, sample in samples:
        collector.update(sample, name)
    return collector


def order_problems(calibrator: Calibrator, samples: Named) -> list[str]:
    """Return the orders of samples that give another state."""
    expected = collected(calibrator, samples).to_bytes()
    orders = {"backwards": samples[::-1], "rotated": [*samples[3:], *samples[:3]], "shuffled": _shuffled(samples)}
    return [
        f"the samples {order} give another state"
        for order, changed in orders.items()
        if collected(calibrator, changed).to_bytes() != expected
    ]


def batch_problems(calibrator: Calibrator, samples: Named) -> list[str]:
    """Return the batchings of the same values that give another state."""
    expected = collected(calibrator, samples).to_bytes()
    flat = np.concatenate([sample.reshape(-1) for _, sample in samples])
    strided = [(name, np.asfortranarray(sample)) for name, sample in samples]
    batches = {
        "all values as one sample": [("all", flat)],
        "samples cut in halves": [(name, half) for name, one in samples for half in np.split(one, 2, axis=1)],
        "samples that lie in memory in another order": strided,
    }
    return [
        f"{batch} give another state"
        for batch, changed in batches.items()
        if collected(calibrator, changed).to_bytes() != expected
    ]


def merge_problems(calibrator: Calibrator, samples: Named) -> list[str]:
    """Return the merges that give another state than the whole, or that modify the merged part."""
    expected = collected(calibrator, samples).to_bytes()
    parts = [samples[:1], samples[1:4], [], samples[4:]]
    ways = {
        "from left to right": _merged([collected(calibrator, part) for part in parts]),
        "from right to left": _merged([collected(calibrator, part) for part in parts[::-1]]),
        "pair by pair": _merged(
            [_merged([collected(calibrator, part) for part in pair]) for pair in (parts[:2], parts[2:])]
        ),
    }
    found = [
        f"parts merged {way} give another state than the whole"
        for way, one in ways.items()
        if one.to_bytes() != expected
    ]
    first, other = collected(calibrator, samples[:2]), collected(calibrator, samples[2:])
    before = other.to_bytes()
    first.merge(other)
    first.update(samples[0][1], "once more")
    if other.to_bytes() != before:
        found.append("merging a part into another changes the part")
    return found


def bytes_problems(calibrator: Calibrator, samples: Named) -> list[str]:
    """Return what a state loses in serialization and restoration."""
    collector = collected(calibrator, samples[:-1])
    data = collector.to_bytes()
    found = [] if collector.to_bytes() == data else ["the same state gives other bytes the second time"]
    if collected(calibrator, samples[:-1]).to_bytes() != data:
        return [*found, "the same samples give another state the second time"]
    restored = calibrator.collector.from_bytes(data, TENSOR)
    if restored.to_bytes() != data:
        found.append("a restored state gives other bytes")
    for one in (collector, restored):
        one.update(samples[-1][1], samples[-1][0])
    if restored.to_bytes() != collector.to_bytes():
        found.append("a restored state goes on otherwise than the one that it was made from")
    return found


def damage_problems(calibrator: Calibrator, samples: Named) -> list[str]:
    """Return the damaged bytes that are not rejected."""
    collector = collected(calibrator, samples)
    data, payload = collector.to_bytes(), collector.payload()
    flipped = bytes([*data[:-1], data[-1] ^ 1])
    found = []
    for what, damaged in (("a flipped bit", flipped), ("a missing end", data[:-1]), ("no bytes at all", b"")):
        try:
            calibrator.collector.from_bytes(damaged, TENSOR)
            found.append(f"{what} is not noticed")
        except CalibrationError:
            continue
    try:
        calibrator.collector(TENSOR).restore(payload[: len(payload) // 2])
        found.append("`restore` takes half of a payload")
    except CalibrationError:
        pass
    except Exception as error:  # noqa: BLE001  what a stranger's code raises is the finding
        found.append(f"`restore` raises {type(error).__name__} instead of CalibrationError for half of a payload")
    return found


def nonfinite_problems(calibrator: Calibrator, samples: Named) -> list[str]:
    """Return NaN and infinity that are not rejected with tensor and sample, or not counted when skipped."""
    found = []
    for what in (np.nan, np.inf, -np.inf):
        bad = samples[1][1].copy()
        bad.reshape(-1)[3] = what
        collector = collected(calibrator, samples[:1])
        before = collector.to_bytes()
        try:
            collector.update(bad, "the bad one")
            found.append(f"{what} is taken as a value")
        except DryfitError as error:
            if TENSOR not in str(error) or "the bad one" not in str(error):
                found.append(f"the error for {what} does not name tensor and sample: {error}")
        if collector.to_bytes() != before:
            found.append(f"{what} changes the state although it is refused")
        skipping = calibrator.collector(TENSOR, skips_nonfinite=True)
        skipping.update(bad, "the bad one")
        if skipping.skipped != 1:
            found.append(f"{what} is to be skipped and counted; counted were {skipping.skipped}")
    return found


def _shuffled(samples: Named) -> Named:
    return [samples[index] for index in np.random.default_rng(3).permutation(len(samples))]


def _merged(collectors: Sequence[Collector]) -> Collector:
    """The first collector, with all others merged into it."""
    first, *others = collectors
    for other in others:
        first.merge(other)
    return first
