"""The interface of a target's segment compiler and loader.

A target with a compiler turns each of its segments into a program, which is a byte string: engines store programs, and
`dryfit export loadables` writes them to files. The target's loader turns a program into what runs on this machine.
A target without a compiler runs layer groups with kernels. It may still have an exporter, which writes a segment as a
file for the device's own runtime; engines do not store that file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType

if TYPE_CHECKING:
    from dryfit.network.network import Network
    from dryfit.target.formats import TensorFormat
    from dryfit.target.kernels import Array, Step
    from dryfit.target.target import Platform


@frozen
class HostOperation:
    """Layers of a segment that the host runs as one operation.

    Attributes:
        layers: names of the layers, in a valid execution order; a dequantization may be in several operations.
        kernel: name of the host kernel.
        precision: computation type.
    """

    layers: Sequence[str]
    kernel: str
    precision: DataType


@frozen
class HostRun:
    """How the host runs a segment: everything needed to reproduce the same bits elsewhere.

    Attributes:
        operations: in execution order.
        layouts: name of each stored tensor to the name of its `HostLayout`.
    """

    operations: Sequence[HostOperation]
    layouts: Mapping[str, str]


@frozen(eq=False)
class PlannedSegment:
    """A segment as planned by the builder.

    Attributes:
        device: device of the target.
        platform: variant of the device to build for.
        software: software version to build for; empty if the device has one rule set.
        index: index of the segment in the engine, in execution order.
        network: the segment's layers in execution order, each tensor in the type in which it is stored, with all
            constants and weights. Its inputs and outputs are the tensors that cross the segment boundary, under their
            names in the engine. Weights are shared with the engine and must not be modified.
        input_formats, output_formats: name of an input or output to its format in the device's memory.
        precisions: layer name to computation type.
        pool_limits: pool name to the limit in bytes, set by the user or the device's default. None: no limit.
        pools: pool name to the required bytes, as in the engine's report. Empty for a compiler.
        host_run: how the host runs the segment. None for a compiler, whose loader runs it.
        origins: name of an input or output to the corresponding tensor of the user's network, in any type.
    """

    device: str
    platform: Platform
    software: tuple[int, ...]
    index: int
    network: Network
    input_formats: Mapping[str, TensorFormat]
    output_formats: Mapping[str, TensorFormat]
    precisions: Mapping[str, DataType]
    pool_limits: Mapping[str, int | None]
    pools: Mapping[str, int] = attrs.field(factory=dict)
    host_run: HostRun | None = None
    origins: Mapping[str, str] = attrs.field(factory=dict)


@frozen(eq=False)
class SegmentBinding:
    """The memory of one execution context at one set of shapes, to which a loaded segment is bound.

    Attributes:
        inputs, outputs: name of an input or output to its array, in the order of `PlannedSegment.network`. Arrays have
            the tensor's logical shape (N, C, H, W), regardless of the format on the device, and may have any strides.
            They do not move during the lifetime of the steps. Outputs do not overlap inputs; their contents before a
            run are undefined.
        num_threads: number of threads that run the engine.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    num_threads: int = 1


class LoadedSegment(Protocol):
    """A loaded program, shared by all execution contexts of an engine.

    In an untrusted file, a program may be paired with a segment for which it was not compiled. If the loaded segment
    has an attribute `tensors`, which maps the name of each input and output to the `TensorSpec` for which the program
    was compiled, it is bound to matching arrays only; an extent of -1 matches any. Otherwise, `bind` itself must check
    the arrays, and raise if the program would access memory beyond them.
    """

    def bind(self, binding: SegmentBinding) -> Sequence[Step | Callable[[], None]]:
        """Return the steps of one run, in order, which compute every output from the inputs. Called per context.

        Contexts run concurrently in several threads: scratch memory must belong to the steps, not to the segment.
        """
        ...


CompileSegment = Callable[[PlannedSegment], bytes]
"""Compiles a segment to a program: the same segment must always give the same bytes. Raises `BuildError` for a segment
that it cannot compile."""

ExportSegment = Callable[[PlannedSegment], bytes]
"""Writes a segment that the host runs with kernels as a file for the device's own runtime: the same segment must always
give the same bytes. Raises `BuildError` for a segment that it cannot write."""

LoadSegment = Callable[[bytes], LoadedSegment]
"""Loads a program as an object that can be bound. The program may come from an untrusted file: the loader must not
execute any of it, and must raise if it is not what the compiler wrote, including every offset and extent."""
