"""The plan: the output of the builder, and the contents of an engine file.

A plan is data: the engine's network (the user's network after the passes, with each tensor in its computation type and
a reformat wherever a tensor crosses a border), the operations that run it, and the decisions with their reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from dryfit.attrs_classes import frozen
from dryfit.engine.refit_record import RefitRecord
from dryfit.network.data_types import DataType
from dryfit.network.layers.assertion import AssertionRecord
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Shape, Tensor
from dryfit.target.cost import CostEstimate
from dryfit.target.kernels import HostLayout
from dryfit.target.verdict import Verdict

PROGRAM = "program"
"""Name of the packed array that is the program of a compiled segment: `uint8[bytes]`."""


def segment_kernel_name(device: str) -> str:
    """Return the name of the kernel that runs the compiled segments of a device."""
    return f"{device.lower()}.segment"


@frozen(eq=False)
class Operation:
    """An engine layer with its kernel: a layer group, or a whole compiled segment.

    Attributes:
        name: names of the user's layers, joined with " + "; for a compiled segment, `{ForeignNode[first...last]}`.
        layers: names of the layers of the plan's network, in a valid execution order.
        kernel: name of the host kernel.
        device: device that runs the layer.
        segment: index of the segment; -1 for none: a shape computation, which the host performs, or a reformat at the
            border of the engine or between two segments.
        precision: computation type.
        source_layers: names of the user's layers.
        onnx_nodes: names of the ONNX nodes that the layers were imported from.
        weights: arrays packed by the kernel; for a compiled segment, its program.
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
        """Whether this is a segment compiled by its target."""
        return self.kernel == segment_kernel_name(self.device)


@frozen
class TensorPlacement:
    """The place of a tensor of the plan's network.

    Attributes:
        tensor: name of the tensor in the plan's network.
        device, format: device of the tensor, and its tensor format there.
        pool: name of the memory pool; "" for the engine's inputs and outputs and for shape tensors.
        offset, size: offset and size in the pool, in bytes in the device's format, at the optimum shapes of the first
            profile.
        host_layout: layout of the tensor on the host.
    """

    tensor: str
    device: str
    format: str
    pool: str
    offset: int
    size: int
    host_layout: HostLayout


@frozen
class Segment:
    """A maximal sequence of layers on one device.

    Attributes:
        index: index in execution order.
        device: device that runs the segment.
        layers: names of the user's layers, in execution order.
        inputs, outputs: names of the tensors of the user's network that cross the segment's border.
        pools: required bytes by pool name.
        cut_cause: why the previous segment of the same device could not be continued; "" for the first.
        estimate: estimated cost of one run; None if the target has no cost model.
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


@frozen
class PoolShortage:
    """A memory pool that is too small for a segment.

    Attributes:
        pool: name of the pool.
        needed: number of bytes that the segment requires.
        limit: limit of the pool in bytes.
    """

    pool: str
    needed: int
    limit: int


@frozen
class RejectedSegment:
    """Layers that could not run as one segment of a device and were moved to another device as a whole.

    Attributes:
        device: device that the layers were assigned to.
        layers: names of the user's layers, in execution order.
        cause: why the layers could not run there.
        shortages: memory pools that are too small; empty if there was another cause.
        fallback: device that the layers moved to; "" for none.
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
        """Device that the layers moved to; None for none."""
        return self.fallback or None


@frozen
class Reformat:
    """A copy between two types, formats or devices.

    Attributes:
        tensor: tensor of the user's network.
        source, destination: `DEVICE TYPE FORMAT` of both sides.
        size: number of bytes written.
        cause: why the copy is needed: which layer writes which format, and which layer reads which.
        rule: id of the rule that causes the copy; see `dryfit explain-rule`.
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
    """The placement of a layer of the user's network.

    Attributes:
        layer: name of the layer.
        kind: kind of the layer.
        device: device that runs the layer.
        precision: computation type of the layer.
        segment: index of the layer's segment; -1 for a shape computation.
        cause: why the layer runs on this device.
        onnx_nodes: names of the ONNX nodes that the layer was imported from.
    """

    layer: str
    kind: str
    device: str
    precision: DataType
    segment: int
    cause: str
    onnx_nodes: Sequence[str] = ()


@frozen
class ProfileShapes:
    """One optimization profile.

    Attributes:
        shapes: (minimum, optimum, maximum) shape of each dynamic input.
        values: (minimum, optimum, maximum) values of each input that carries dimensions, element by element.
    """

    shapes: Mapping[str, tuple[Shape, Shape, Shape]]
    values: Mapping[str, tuple[Shape, Shape, Shape]] = attrs.field(factory=dict)


@frozen(eq=False, kw_only=True)
class Decisions:
    """The decisions about a network with their reasons, shared by assessments, plans and engine files.

    Attributes:
        layers: placement of each layer of the user's network, in network order; device "" for an unplaced layer.
            Constants belong to the layers that use them and are not listed.
        verdicts: verdict by device for each layer of the user's network, for the devices that were checked.
        segments: segments in execution order.
        reformats: copies between types, formats or devices; empty if a layer is unplaced.
        warnings: one sentence for each layer or segment that fell back, and for each request that was not granted.
        rejected: segments that could not run on their device and were moved.
    """

    layers: Sequence[LayerPlacement] = ()
    verdicts: Mapping[str, Mapping[str, Verdict]]
    segments: Sequence[Segment]
    reformats: Sequence[Reformat]
    warnings: Sequence[str] = ()
    rejected: Sequence[RejectedSegment] = ()


@frozen(eq=False, kw_only=True)
class BuildRecord(Decisions):
    """The facts about a built network besides its layers and weights; an engine file has exactly these fields.

    Attributes:
        placements: place of each stored tensor of the plan's network. Tensors inside an operation and constants have
            none.
        profiles: optimization profiles; empty if all shapes are static.
        pool_sizes: number of bytes used, by `device/pool`.
        settings: config settings of the build, as plain data.
        plugins: active plugins: `name version (distribution)`.
        packages: package that provided each `target DEVICE`, `layer namespace::Name version` or `quantize_method NAME`
            at build time, as `distribution version`; these must be installed to run the engine.
        hidden_outputs: outputs of the plan's network that callers do not get: debug tensors, and conditions of
            assertions.
        debug_tensors: tensors that the user marked as debug tensors.
        has_unfused_debug_tensors: whether the user marked all tensors that the engine stores as debug tensors.
        assertions: conditions that every run must satisfy.
        aliased_inputs: each output that is an updated cache, to the input that is the cache. TensorRT keeps both in
            the same memory.
    """

    placements: Mapping[str, TensorPlacement]
    profiles: Sequence[ProfileShapes]
    pool_sizes: Mapping[str, int]
    settings: Mapping[str, Any]
    plugins: Sequence[str]
    packages: Mapping[str, str] = attrs.field(factory=dict)
    hidden_outputs: Sequence[str] = ()
    debug_tensors: Sequence[str] = ()
    has_unfused_debug_tensors: bool = False
    assertions: Sequence[AssertionRecord] = ()
    aliased_inputs: Mapping[str, str] = attrs.field(factory=dict)


@frozen(eq=False, kw_only=True)
class Plan(BuildRecord):
    """A built network.

    Attributes:
        network: layers and tensors of the engine, in execution order.
        operations: operations in execution order. Together they contain every layer of `network` once, except
            constants, whose outputs are known without running anything, and dequantizations, which several operations
            may repeat.
        refit: data for exchanging weights; None if refit is not supported.
    """

    network: Network
    operations: Sequence[Operation]
    refit: RefitRecord | None = None

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The outputs that callers get: those of the network without the hidden ones."""
        return [tensor for tensor in self.network.outputs if tensor.name not in self.hidden_outputs]

    @property
    def is_stripped(self) -> bool:
        """Whether the engine has no weights: it can be inspected and refitted, but not run."""
        return self.refit is not None and self.refit.is_stripped

    @property
    def programs(self) -> Mapping[int, bytes]:
        """The program compiled by the target for the device's own runtime, by index of the compiled segment.

        A stripped plan has no programs.
        """
        return {
            operation.segment: operation.weights[PROGRAM].tobytes()
            for operation in self.operations
            if operation.is_compiled and PROGRAM in operation.weights
        }
