"""Loadables: one file per DLA segment, and its contents.

A loadable holds everything that a run of a segment on a DLA needs: layers, weights in the device's layout, inputs and
outputs with formats and strides, memory requirements, and the platform and software version that it was built for. The
file format is dryfit's own, documented in docs/reference/loadable.md; NVIDIA's is not published, so boards cannot load
it. It runs by emulation: `Loadable.create_engine` makes an engine of the segment, bit-identical to the engine that the
segment was part of.

`loadable_export` writes them, and `loadable_file` reads them; this module is the public part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError, EngineFileError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.target.segments import PlannedSegment
from dryfit_dla.loadable_tensor import LoadableTensor

if TYPE_CHECKING:
    from dryfit.engine.engine import Engine

__all__ = ["Loadable", "LoadableLayer", "LoadableTensor", "StoredWeights"]

Array = np.ndarray[Any, Any]


@frozen
class StoredWeights:
    """Weights as stored in a loadable.

    Attributes:
        name: unique in the loadable: layer and parameter.
        layer: the layer that they belong to.
        layout: name of the layout in `dryfit_dla.weight_layouts`.
        stored: type of an element there.
        dtype, shape: of the values, as the layer has them.
        size_bytes: bytes in the device's global DRAM, with padding.
    """

    name: str
    layer: str
    layout: str
    stored: DataType
    dtype: DataType
    shape: tuple[int, ...]
    size_bytes: int


@frozen
class LoadableLayer:
    """One layer.

    Attributes:
        name: the layer's name.
        kind: its layer kind.
        precision: the type it is computed in.
        onnx_nodes: names of the ONNX nodes it came from.
    """

    name: str
    kind: str
    precision: DataType
    onnx_nodes: tuple[str, ...]


@frozen(eq=False)
class Loadable:
    """A loadable that was read from a file. Nothing in it was executed; every digest was verified.

    Attributes:
        name: of the network and segment that it was made from.
        platform: name of the platform, such as `agx-orin-64`.
        family: `orin` or `xavier`.
        software: software version that it was built for, such as `(10, 3)`.
        segment: number of the segment in the network that it was cut from.
        inputs, outputs: in the order in which a runtime numbers them.
        origins: name of an input or output to the tensor of the user's network that it is, in whatever type.
        layers: in execution order.
        weights: in the order of the file.
        pools: memory pool to the bytes that the loadable needs. For the managed SRAM, a cache that is never too
            small, the bytes that it may use.
        pool_limits: memory pool to the limit in bytes that it was built with; None for no limit.
        simulated: which aspects of the device are simulated.
        planned: the segment as the builder planned it, with its weights as the layers have them.

    Example:
        >>> loadable = read_loadable("model.segment0.loadable")
        >>> [tensor.format for tensor in loadable.inputs]
        ['CHW16']
        >>> context = loadable.create_engine().create_execution_context()
    """

    name: str
    platform: str
    family: str
    software: tuple[int, ...]
    segment: int
    inputs: Sequence[LoadableTensor]
    outputs: Sequence[LoadableTensor]
    origins: Mapping[str, str]
    layers: Sequence[LoadableLayer]
    weights: Sequence[StoredWeights]
    pools: Mapping[str, int]
    pool_limits: Mapping[str, int | None]
    simulated: str
    planned: PlannedSegment = attrs.field(repr=False)
    _arrays: Mapping[str, Array] = attrs.field(repr=False)

    def input(self, name: str) -> LoadableTensor:
        """Return an input by name.

        Raises:
            UnknownNameError: the name is unknown.
        """
        return _named(self.inputs, name, "input", self.name)

    def output(self, name: str) -> LoadableTensor:
        """Return an output by name.

        Raises:
            UnknownNameError: the name is unknown.
        """
        return _named(self.outputs, name, "output", self.name)

    def stored_weights(self, name: str) -> Array:
        """The bytes of weights in the device's layout, read-only.

        Args:
            name: a name of `weights`.

        Raises:
            UnknownNameError: the name is unknown.
        """
        if name not in self._arrays:
            raise UnknownNameError("weights", name, self._arrays, where=f"loadable {self.name!r}")
        return self._arrays[name]

    def create_engine(self) -> Engine:
        """Return an engine of this segment alone, which emulates it on this machine.

        Its inputs and outputs have the names, types and logical shapes of the loadable's; `LoadableTensor.read` and
        `write` turn them into the device's memory and back. Its results are bit-identical to those of the engine that
        the segment was part of. Any number of execution contexts can run it concurrently.

        Raises:
            EngineFileError: a host kernel that the loadable names is not installed, or does not support its layers.
        """
        from dryfit.builder.segments.engine import segment_engine

        try:
            return segment_engine(self.planned)
        except DryfitError:
            raise
        except Exception as error:  # a kernel may fail in any way on what a file states about its layers
            raise EngineFileError(
                "The host kernel that the loadable names cannot run its layers",
                where=f"loadable {self.name!r}",
                found=f"{type(error).__name__}: {error}",
                remedy="Export the loadable again",
            ) from error


def _named(tensors: Sequence[LoadableTensor], name: str, what: str, where: str) -> LoadableTensor:
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    raise UnknownNameError(what, name, [tensor.name for tensor in tensors], where=f"loadable {where!r}")
