"""The plan: what the builder hands to the engine, and what an engine file holds.

A plan is data: the engine's network (the user's network after the passes, with each tensor in the type in which it is
computed, and a reformat where a tensor crosses a border), the operations that run it, and the decisions with their
reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from dryfit.engine.refit_record import RefitRecord
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Shape
from dryfit.target.cost import CostEstimate
from dryfit.target.kernels import HostLayout
from dryfit.target.verdict import Verdict

PROGRAM = "program"
"""Name of the packed array that is the program of a compiled segment: `uint8[bytes]`."""


def segment_kernel_name(device: str) -> str:
    """Name of the kernel that runs the compiled segments of a device."""
    return f"{device.lower()}.segment"


@attrs.frozen(eq=False)
class Operation:
    """One engine layer: a layer group, or a whole compiled segment, with the kernel that runs it.

    Attributes:
        name: the user's layer names, joined with " + "; `{ForeignNode[first...last]}` of a compiled segment.
        layers: names of the layers of the plan's network, in an order in which they can run.
        kernel: name of the host kernel.
        device: the device that runs it.
        segment: index of the segment; -1 for what belongs to none: a shape computation, which the host does, and a
            reformat at the border of the engine or between two segments.
        precision: computation type.
        source_layers: names of the user's layers.
        onnx_nodes: names of the ONNX nodes they came from.
        weights: what the kernel packed; of a compiled segment, its program.
    """

    name: str
    layers: Sequence[str]
    kernel: str
    device: str
    segment: int
    precision: DataType
    source_layers: Sequence[str]
    onnx_nodes: Sequence[str]
    weights: Mapping[str, Array] = attrs.field(factory=dict, repr=False)

    @property
    def is_compiled(self) -> bool:
        """Whether it is a segment that its target compiled."""
        return self.kernel == segment_kernel_name(self.device)


@attrs.frozen
class TensorPlacement:
    """Where one tensor of the plan's network lives.

    Attributes:
        tensor: name in the plan's network.
        device, format: the device, and the name of the tensor format there.
        pool: name of the memory pool, or "" for the engine's inputs and outputs and for shape tensors.
        offset, size: bytes in the pool, in the device's format, at the optimum shapes of the first profile.
        host_layout: how the host keeps it.
    """

    tensor: str
    device: str
    format: str
    pool: str
    offset: int
    size: int
    host_layout: HostLayout


@attrs.frozen
class Segment:
    """A maximal run of one device.

    Attributes:
        index: in execution order.
        device: its device.
        layers: names of the user's layers, in execution order.
        inputs, outputs: names of the tensors of the user's network that cross its border.
        pools: pool name to bytes that it needs.
        cut_cause: why it does not continue the segment of the same device before it; "" for the first.
        estimate: what its target estimates one run of it to cost; None where the target has no cost model.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {
        "index": "id",
        **{name: name for name in ("device", "layers", "inputs", "outputs", "pools", "cut_cause", "estimate")},
    }
    JSON_OPTIONAL: ClassVar[Sequence[str]] = ("estimate",)

    index: int
    device: str
    layers: Sequence[str]
    inputs: Sequence[str]
    outputs: Sequence[str]
    pools: Mapping[str, int]
    cut_cause: str = ""
    estimate: CostEstimate | None = None


@attrs.frozen
class PoolShortage:
    """A memory pool that has less than a segment needs.

    Attributes:
        pool: its name.
        needed: bytes that the segment needs.
        limit: bytes that it may have.
    """

    pool: str
    needed: int
    limit: int


@attrs.frozen
class RejectedSegment:
    """Layers that were to run as one segment of a device and could not: as a whole they went elsewhere.

    Attributes:
        device: where they were to run.
        layers: names of the user's layers, in execution order.
        cause: why they could not.
        shortages: the memory pools that fell short; none where something else was in the way.
        fallback: the device they moved to; "" for none.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {
        "layers": "layers",
        "cause": "cause",
        "shortages": "short_of",
        "fallback_device": "fallback",
    }

    device: str
    layers: Sequence[str]
    cause: str
    shortages: Sequence[PoolShortage] = ()
    fallback: str = ""

    @property
    def fallback_device(self) -> str | None:
        """Where they went; None for nowhere."""
        return self.fallback or None


@attrs.frozen
class Reformat:
    """A copy between two types, formats or devices.

    Attributes:
        tensor: the tensor in the user's network.
        source, destination: `DEVICE TYPE FORMAT`.
        size: bytes written.
        cause: why it is there: who gives what, and who takes what.
        rule: id of the reason, which `dryfit explain-rule` explains.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {
        "tensor": "tensor",
        "source": "from",
        "destination": "to",
        "size": "bytes",
        "cause": "cause",
        "rule": "rule",
    }

    tensor: str
    source: str
    destination: str
    size: int
    cause: str
    rule: str = ""


@attrs.frozen
class LayerPlacement:
    """Where one of the user's layers runs.

    Attributes:
        layer: the user's layer.
        kind: its layer kind.
        device: its device.
        precision: the type it is computed in.
        segment: index of its segment; -1 for a shape computation.
        cause: why it runs there.
        onnx_nodes: names of the ONNX nodes it came from.
    """

    layer: str
    kind: str
    device: str
    precision: DataType
    segment: int
    cause: str
    onnx_nodes: Sequence[str] = ()


@attrs.frozen
class ProfileShapes:
    """One optimization profile.

    Attributes:
        shapes: (minimum, optimum, maximum) shape of each dynamic input.
        values: (minimum, optimum, maximum) contents of each input that carries dimensions, element by element.
    """

    shapes: Mapping[str, tuple[Shape, Shape, Shape]]
    values: Mapping[str, tuple[Shape, Shape, Shape]] = attrs.field(factory=dict)


@attrs.frozen(eq=False, kw_only=True)
class Decisions:
    """What was decided about a network, and why: what an assessment, a plan and an engine file have in common.

    Attributes:
        layers: where each of the user's layers runs, in the order of the network; device "" where it was refused.
            Constants belong to the layers that use them, and are not listed.
        verdicts: user layer name to device to verdict, for the devices that were asked.
        segments: in execution order.
        reformats: the copies between types, formats or devices; none where something was refused.
        warnings: one sentence for each layer or segment that fell back, and for each wish that was not granted.
        rejected: segments that could not be on their device, and went elsewhere.
    """

    layers: Sequence[LayerPlacement] = ()
    verdicts: Mapping[str, Mapping[str, Verdict]]
    segments: Sequence[Segment]
    reformats: Sequence[Reformat]
    warnings: Sequence[str] = ()
    rejected: Sequence[RejectedSegment] = ()


@attrs.frozen(eq=False, kw_only=True)
class BuildRecord(Decisions):
    """What is known of a built network beside its layers and weights; an engine file has exactly these fields.

    Attributes:
        placements: where each tensor lives. Every tensor of the plan's network that is stored has a placement: none is
            inside an operation, and none is a constant.
        profiles: optimization profiles; empty when all shapes are static.
        pool_sizes: `device/pool` to bytes used.
        settings: the config that was built with, as plain data.
        plugins: active plugins: `name version (distribution)`.
        packages: `target DEVICE`, `layer namespace::Name version` or `quantize_method NAME` to the package that brought
            it when the engine was built, as `distribution version`: what has to be installed to run it.
    """

    placements: Mapping[str, TensorPlacement]
    profiles: Sequence[ProfileShapes]
    pool_sizes: Mapping[str, int]
    settings: Mapping[str, Any]
    plugins: Sequence[str]
    packages: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(eq=False, kw_only=True)
class Plan(BuildRecord):
    """A built network.

    Attributes:
        network: layers and tensors of the engine, in execution order.
        operations: in execution order; together they hold every layer of `network` once, except constants, whose
            outputs are known without running anything, and dequantizations, which any number of operations repeat.
        refit: what it takes to exchange weights; None where they cannot be.
    """

    network: Network
    operations: Sequence[Operation]
    refit: RefitRecord | None = None

    @property
    def is_stripped(self) -> bool:
        """Whether it has no weights: it can be looked at and refitted, and not run."""
        return self.refit is not None and self.refit.is_stripped

    @property
    def programs(self) -> Mapping[int, bytes]:
        """Index of each compiled segment to the program that its target made, for the device's own runtime.

        A stripped plan has none.
        """
        return {
            operation.segment: operation.weights[PROGRAM].tobytes()
            for operation in self.operations
            if operation.is_compiled and PROGRAM in operation.weights
        }
