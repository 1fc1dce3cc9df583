"""Whether two models compute the same: both are run on random inputs by the reference, and compared.

Compared are the outputs, and every inner value that both have and that another node computes in the new model: a
softmax at the end could hide what differs in front of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError, OnnxImportError
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.onnx.importer import network_from_onnx
from dryfit.reference.executor import run_reference
from dryfit.reference.inference import infer_specs

SEEDS = (0, 1, 2)
TOLERANCES = {DataType.HALF: 1e-2, DataType.BF16: 8e-2}
FLOAT_TOLERANCE = 1e-5
"""Largest allowed difference of an output, as a share of its largest absolute value. Our choice: a few roundings of
the type more or less, since an edit may add in another order; what is wrong differs by far more."""
ROUNDINGS, LARGEST_TOLERANCE = 4, 1e-3
"""Deep networks amplify roundings: where more differs, it may be so many times what other last bits of the old model's
kernels change, up to the second number. Our choice: in the detector of PP-OCRv4, which has 64 convolutions, they change
the output by 0.8e-5 to 1.3e-5 of its range (measured), and an edit may round at more places than those."""
DYNAMIC_BATCHES = (1, 3)
"""Batches that are tried where the model leaves it open."""


@frozen
class Proof:
    """What was compared.

    Attributes:
        seeds: of the random inputs, one run of both models each.
        values: names of what was compared.
        largest_difference: the largest that was found, as a share of the value's largest absolute one.
        tolerance: the largest share that was allowed: it depends on the values' types.
    """

    seeds: Sequence[int]
    values: Sequence[str]
    largest_difference: float
    tolerance: float


def prove_equal(
    old: ModelProto,
    new: ModelProto,
    folder: Path | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seeds: Sequence[int] = SEEDS,
) -> Proof:
    """Run both models on the same random inputs and compare all outputs, and inner values that are computed anew.

    Args:
        old: the model as it was.
        new: the edited model. Floating-point inputs are normal with standard deviations of 1 and, for odd seeds, of 8,
            so that bounds such as that of ReLU6 are reached; integers lie between 0 and 9.
        folder: where the external data of both lie.
        shapes: input name to its shape, for extents that the model leaves open.
        seeds: of the random inputs, one run each.

    Raises:
        OnnxImportError: inputs or outputs have other names, types or shapes; an extent other than the batch is open;
            or outputs differ by more than the tolerance. Names the output, the seed and the difference.
    """
    networks = [network_from_onnx(model, folder=folder) for model in (old, new)]
    for which in ("inputs", "outputs"):
        borders = [[(tensor.name, tensor.dtype) for tensor in getattr(network, which)] for network in networks]
        if borders[0] != borders[1]:
            raise OnnxImportError(
                f"The {which} of the edited model must not change",
                found=borders[1],
                allowed=borders[0],
                remedy="Report the model and the edit",
            )
    values = _common_values(old, new)
    batches = _input_shapes(networks[0], shapes or {})
    largest = tolerance = 0.0
    for number, seed in enumerate(seeds):
        generator = np.random.default_rng(seed)
        spread = 8.0 if seed % 2 else 1.0
        batch = batches[number % len(batches)]
        feeds = {tensor.name: _random(generator, tensor, batch[tensor.name], spread) for tensor in networks[0].inputs}
        expected, found = (_values(network, feeds, values) for network in networks)
        rounded: dict[str, Array] = {}
        for name, array in expected.items():
            if name not in found:
                continue
            where = f"value {name!r}, random inputs of seed {seed}"
            difference, allowed = _difference(array, found[name], where), _tolerance(array)
            if difference > allowed > 0:
                rounded = rounded or _values(_with_other_last_bits(networks[0], generator), feeds, values)
                by_rounding = ROUNDINGS * _difference(array, rounded[name], where)
                allowed = max(allowed, min(by_rounding, LARGEST_TOLERANCE))
            _require_at_most(difference, allowed, where)
            largest, tolerance = max(largest, difference), max(tolerance, allowed)
    return Proof(seeds, values, largest, tolerance)


def _with_other_last_bits(network: Network, generator: np.random.Generator) -> Network:
    """A copy whose FP32 kernels are each the next larger or the next smaller number."""
    copy = copy_network(network)
    for layer in copy.layers:
        kernel = vars(layer).get("kernel")
        if isinstance(kernel, np.ndarray) and kernel.dtype == np.float32:
            ways = np.where(generator.random(kernel.shape) < 0.5, -np.inf, np.inf).astype(np.float32)
            layer.kernel = np.nextafter(kernel, ways)  # type: ignore[attr-defined]
    return copy


def _common_values(old: ModelProto, new: ModelProto) -> list[str]:
    """The outputs, and the values that both models compute, by nodes that differ."""
    before, after = (
        {name: node.SerializeToString() for node in model.graph.node for name in node.output if name}
        for model in (old, new)
    )
    outputs = [info.name for info in old.graph.output]
    return list(dict.fromkeys([*(name for name in after if before.get(name, after[name]) != after[name]), *outputs]))


def _values(network: Network, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
    """What a network computes for these names; an inner value that it folds into another one is left out."""
    wanted = set(names)
    found: dict[str, Array] = {}

    def keep(tensor: Tensor, array: Array) -> None:
        if tensor.name in wanted:
            found[tensor.name] = array

    with np.errstate(all="ignore"):
        outputs = run_reference(network, feeds, keep)
    return {**found, **outputs}


def _input_shapes(network: Network, shapes: Mapping[str, Sequence[int]]) -> list[dict[str, tuple[int, ...]]]:
    """Input name to shape: as asked for, and with another batch where the model leaves it open and takes others."""
    found = []
    for batch in DYNAMIC_BATCHES:
        asked = {
            tensor.name: _shape(tensor, shapes.get(tensor.name), None if batch == 1 else batch)
            for tensor in network.inputs
        }
        try:
            infer_specs(network, asked)
        except DryfitError:
            # Some exporters leave the batch open and then reshape to a batch of 1: such a model has one batch.
            if batch == DYNAMIC_BATCHES[0]:
                raise
            continue
        found.append(asked)
    return found


def _shape(tensor: Tensor, asked: Sequence[int] | None, batch: int | None) -> tuple[int, ...]:
    """The shape that was asked for, or the tensor's own; the batch, where it is open, is `batch` if that is given."""
    shape = list(tensor.shape)
    for axis, extent in enumerate(shape):
        if extent < 0 and axis == 0:
            shape[axis] = batch or (asked[0] if asked else 1)
        elif extent < 0 and asked:
            shape[axis] = asked[axis]
    if -1 in shape:
        raise OnnxImportError(
            "All dimensions except the batch must be static",
            where=f"input {tensor.name!r}",
            found=tensor.shape,
            remedy=f"Set them with --shape {tensor.name}=...",
        )
    return tuple(shape)


def _random(generator: np.random.Generator, tensor: Tensor, shape: tuple[int, ...], spread: float) -> Array:
    if tensor.dtype.is_floating_point:
        return np.asarray(generator.normal(0.0, spread, shape)).astype(tensor.dtype.numpy)
    high = 2 if tensor.dtype is DataType.BOOL else 10
    return generator.integers(0, high, shape).astype(tensor.dtype.numpy)


def _tolerance(array: Array) -> float:
    """The share of the largest absolute value by which elements may differ; 0 for types that are exact."""
    if array.dtype.kind in "iub":
        return 0.0
    return next((share for dtype, share in TOLERANCES.items() if dtype.numpy == array.dtype), FLOAT_TOLERANCE)


def _difference(expected: Array, found: Array, where: str) -> float:
    """The largest difference, as a share of the largest absolute value; inf where non-numbers differ.

    Of types that are exact, the share of the elements that differ.

    Raises:
        OnnxImportError: they have other shapes or types.
    """
    if expected.shape != found.shape or expected.dtype != found.dtype:
        raise OnnxImportError(
            "The edited model returns another shape or type",
            where=where,
            found=f"{found.dtype} {found.shape}",
            allowed=f"{expected.dtype} {expected.shape}",
            remedy=_REMEDY,
        )
    if not _tolerance(expected):
        return float((expected != found).mean()) if expected.size else 0.0
    old, new = expected.astype(np.float64), found.astype(np.float64)
    finite = np.isfinite(old)
    if not np.array_equal(finite, np.isfinite(new)) or not np.array_equal(old[~finite], new[~finite], equal_nan=True):
        return float("inf")
    gap = np.abs(old - new, where=finite, out=np.zeros_like(old))
    range_ = float(np.abs(old, where=finite, out=np.zeros_like(old)).max(initial=0.0)) or 1.0
    return float(gap.max(initial=0.0)) / range_


def _require_at_most(difference: float, allowed: float, where: str) -> None:
    if not difference <= allowed:
        raise OnnxImportError(
            "The outputs of the edited model differ by more than the tolerance",
            where=where,
            found=f"a difference of {difference:.3g} of the value's range",
            allowed=f"at most {allowed:.3g}",
            remedy=_REMEDY,
        )


_REMEDY = "Nothing was written. Report the model and the edit"
