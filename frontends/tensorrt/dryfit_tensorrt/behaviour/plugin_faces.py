"""What dryfit asks of a plugin of a program, in the form of each interface, and the record that an engine keeps of it.

An exception in a method of the program is printed, and a `PluginError` names the method.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

import attrs

import dryfit
from dryfit.attrs_classes import define
from dryfit_tensorrt.behaviour.dimension_expressions import Node, extents_of, flattened, values_of
from dryfit_tensorrt.behaviour.objects import called_back
from dryfit_tensorrt.behaviour.plugin_fields import stored_fields
from dryfit_tensorrt.behaviour.values import core_dtype, of_enum

LINEAR, CHANNELS_LAST = "LINEAR", "HWC"
"""Formats that layer plugins get as plain arrays; the others are records of the GPU's formats."""

Array = Any
Layout = Any
Slot = tuple[dryfit.DataType, Layout]
Shape = tuple[int, ...]

_FAILED = object()


@define
class Record:
    """What a build found out about a plugin layer, so that a run needs nothing that belongs to the build.

    Attributes:
        interface: "V2", "V3" or "QUICK".
        nodes, shapes: steps that evaluate the extents of the outputs, and the step of each extent.
        types: name of the type of each output.
        shape_inputs: indices of the layer's inputs that are shape inputs.
        absent: indices of the inputs that are not connected.
        slots: (type, format) that the plugin gets: of each data input, then of each output; empty
            before a combination was chosen.
        outside: the same on the side of dryfit: FP32 where the plugin computes in INT8 by the ranges of the tensors.
        scales: INT8 scale of each slot, 1 for other types; empty before a combination was chosen.
        aliases: index of an output, as text, to the index of the input whose memory it shares.
        tactic: the tactic that was chosen.
        workspace: bytes of scratch memory.
        fields: name, type and number of entries of each serialized field.
    """

    interface: str
    nodes: list[Node]
    shapes: list[list[int]]
    types: list[str]
    shape_inputs: list[int]
    absent: list[int]
    slots: list[list[str]] = attrs.field(factory=list)
    outside: list[list[str]] = attrs.field(factory=list)
    scales: list[float] = attrs.field(factory=list)
    aliases: dict[str, int] = attrs.field(factory=dict)
    tactic: int = 0
    workspace: int = 0
    fields: list[list[Any]] = attrs.field(factory=list)

    def to_text(self) -> str:
        """Return the record as JSON."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Record:
        """Return the record of `to_text`.

        Raises:
            PluginError: The text is something else.
        """
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise dryfit.PluginError(
                "The engine's record of a plugin is damaged", found=error, remedy="Build the engine again"
            ) from error

    def tensors(self, given: Sequence[Any]) -> list[Any]:
        """Return what belongs to the inputs that the plugin gets as tensors."""
        return [one for index, one in enumerate(given) if index not in {*self.shape_inputs, *self.absent}]

    def values(self, given: Sequence[Any]) -> list[Any]:
        """Return what belongs to the shape inputs."""
        return [given[index] for index in self.shape_inputs]

    def layouts(self) -> list[Slot]:
        """Return type and format of each slot, as the plugin gets it."""
        return [(dryfit.DataType[dtype], layout_named(layout)) for dtype, layout in self.slots]

    def outer_layouts(self) -> list[Slot]:
        """Return type and format of each slot, as dryfit has it."""
        return [(dryfit.DataType[dtype], layout_named(layout)) for dtype, layout in self.outside]


def layout_named(name: str) -> Layout:
    """Return the format of a name: dryfit's own two, or the record of the GPU's format."""
    return name if name in (LINEAR, CHANNELS_LAST) else dryfit.device_formats("GPU")[name]


def layout_name(layout: Layout) -> str:
    """Return the name of a format."""
    return layout if isinstance(layout, str) else str(layout.name)


def tensor_desc(api: Any, shape: Iterable[int], slot: Slot, scale: float = 1.0) -> Any:
    """Return the description of a tensor."""
    desc = api.PluginTensorDesc()
    desc.dims = api.Dims(shape)
    desc.type, desc.format = of_enum(api, "DataType", slot[0]), api.TensorFormat[layout_name(slot[1])]
    desc.scale = scale
    return desc


def dynamic_desc(api: Any, desc: Any, bounds: Sequence[Sequence[int]] | None = None) -> Any:
    """Return a description with the smallest, usual and largest shape; without bounds they are its own."""
    made = api.DynamicPluginTensorDesc()
    made.desc = desc
    made.min, made.opt, made.max = (api.Dims(one) for one in bounds or [desc.dims] * 3)
    return made


class Face:
    """A plugin of a program, asked in the form of its interface.

    Attributes:
        interface: as in `Record`.
        plugin: the program's object.
    """

    interface = "V3"

    def __init__(self, plugin: Any) -> None:
        self.plugin = plugin
        self.api = plugin._api
        self._capabilities: dict[str, Any] = {}

    def capability(self, kind: str) -> Any:
        """Return the object that has a capability."""
        if kind not in self._capabilities:
            self._capabilities[kind] = self.call(
                self.plugin.get_capability_interface, self.api.PluginCapabilityType[kind]
            )
        return self._capabilities[kind]

    @property
    def key(self) -> tuple[str, str, str]:
        """Name, version and namespace."""
        core = self.capability("CORE")
        return core.plugin_name, core.plugin_version, core.plugin_namespace or ""

    def call(self, method: Any, *arguments: Any) -> Any:
        """Return what a method of the program returns.

        Raises:
            PluginError: It raised; the traceback was printed.
        """
        found = called_back(method, *arguments, otherwise=_FAILED)
        if found is _FAILED:
            raise self.failure_of(method, "it raised an exception, which was printed on stderr")
        return found

    def failure_of(self, method: Any, what: str) -> dryfit.PluginError:
        """Return the error that a method of the program failed."""
        name = getattr(method, "__qualname__", None) or getattr(method, "__name__", repr(method))
        return dryfit.PluginError(f"The plugin failed in {name}", found=what, remedy="Fix the plugin")

    # Building ---------------------------------------------------------------------------------------------------------

    def described(self, inputs: Sequence[dryfit.TensorSpec | None], shape_inputs: Sequence[int]) -> Record:
        """Return what the plugin says of its outputs for inputs of these shapes and types.

        Raises:
            PluginError: A method failed, or its answer has the wrong form.
        """
        absent = [index for index, spec in enumerate(inputs) if spec is None]
        record = Record(self.interface, [], [], [], list(shape_inputs), absent)
        tensors = record.tensors(inputs)
        types = self.output_types([of_enum(self.api, "DataType", spec.dtype) for spec in tensors])
        extents = [extents_of(self.api, index, spec.shape) for index, spec in enumerate(tensors)]
        values = [values_of(self.api, index, one.shape, one.value) for index, one in enumerate(record.values(inputs))]
        shapes = self.output_shapes(extents, values, len(types))
        record.types = [core_dtype(one).name for one in types]
        record.nodes, record.shapes = flattened(shapes)
        return record

    def output_types(self, types: list[Any]) -> list[Any]:
        """Return the types of the outputs."""
        build = self.capability("BUILD")
        found = list(self.call(build.get_output_data_types, types) or ())
        return self._checked(found, build.get_output_data_types, build.num_outputs, self.api.DataType)

    def output_shapes(self, extents: list[Any], values: list[Any], count: int) -> list[Any]:
        """Return the extents of the outputs."""
        build = self.capability("BUILD")
        found = list(self.call(build.get_output_shapes, extents, values, self.api.IExprBuilder()) or ())
        return self._complete(self._checked(found, build.get_output_shapes, count, self.api.DimsExprs), build)

    def _checked(self, found: list[Any], method: Any, count: int, kind: Any) -> list[Any]:
        if len(found) != count or not all(isinstance(one, kind) for one in found):
            raise self.failure_of(
                method, f"it returned {found!r}, and must return {count} (num_outputs) objects of {kind.__name__}"
            )
        return found

    def _complete(self, shapes: list[Any], build: Any) -> list[Any]:
        for index, shape in enumerate(shapes):
            if None in list(shape):
                raise self.failure_of(build, f"an extent of output {index} was not set")
        return shapes

    def supports(self, position: int, descs: list[Any], num_inputs: int) -> bool:
        """Return whether a combination of types and formats is supported up to a position."""
        build = self.capability("BUILD")
        given = [dynamic_desc(self.api, desc) for desc in descs]
        return bool(called_back(build.supports_format_combination, position, given, num_inputs, otherwise=False))

    @property
    def combination_limit(self) -> int:
        """Largest number of combinations that are considered."""
        return int(self.capability("BUILD").format_combination_limit)

    def configure(self, inputs: list[Any], outputs: list[Any]) -> None:
        """Hand the chosen types, formats and shapes to the plugin."""
        self.call(self.capability("BUILD").configure_plugin, inputs, outputs)

    def workspace(self, inputs: list[Any], outputs: list[Any]) -> int:
        """Return the bytes of scratch memory."""
        return int(self.call(self.capability("BUILD").get_workspace_size, inputs, outputs) or 0)

    def tactics(self) -> list[int]:
        """Return the tactics of the plugin, distinct and above 0.

        Raises:
            PluginError: One is not above 0, or is there twice.
        """
        method = self.capability("BUILD").get_valid_tactics
        found = [int(one) for one in self.call(method) or ()]
        if any(one <= 0 for one in found) or len(set(found)) != len(found):
            raise self.failure_of(method, f"it returned {found}; tactics must be distinct and above 0")
        return found

    def aliases(self, count: int) -> dict[str, int]:
        """Return outputs that share the memory of an input."""
        ask = getattr(self.capability("BUILD"), "get_aliased_input", None)
        found = {} if ask is None else {str(index): int(self.call(ask, index)) for index in range(count)}
        return {output: source for output, source in found.items() if source >= 0}

    def stored(self) -> tuple[list[list[Any]], tuple[bytes, ...]]:
        """Return what an engine file keeps of the plugin; see `stored_fields`."""
        return stored_fields(self.call(self.capability("RUNTIME").get_fields_to_serialize) or ())

    # Running ----------------------------------------------------------------------------------------------------------

    def attached(self) -> Face:
        """Return the plugin of an execution context."""
        runtime = self.capability("RUNTIME")
        found = self.call(runtime.attach_to_context, object.__new__(self.api.IPluginResourceContext))
        if found is None:
            raise self.failure_of(runtime.attach_to_context, "it returned None, and must return a plugin")
        return type(self)(found)

    def set_tactic(self, tactic: int) -> None:
        """Hand the tactic to use to the plugin."""
        self.call(self.capability("RUNTIME").set_tactic, tactic)

    def change_shapes(self, inputs: list[Any], outputs: list[Any]) -> None:
        """Hand the shapes of the next runs to the plugin."""
        self.call(self.capability("RUNTIME").on_shape_change, inputs, outputs)

    def enqueue(self, *arguments: Any) -> None:
        """Run the plugin."""
        self.call(self.capability("RUNTIME").enqueue, *arguments)

    def release(self) -> None:
        """Tell the plugin that its execution context is gone."""
        called_back(self.plugin.destroy, otherwise=None)


class FaceV2(Face):
    """A plugin of version 2, which is one object with all methods."""

    interface = "V2"

    def capability(self, kind: str) -> Any:
        """Return the plugin."""
        del kind
        return self.plugin

    @property
    def key(self) -> tuple[str, str, str]:
        """Name, version and namespace."""
        return self.plugin.plugin_type, self.plugin.plugin_version, self.plugin.plugin_namespace or ""

    def output_types(self, types: list[Any]) -> list[Any]:
        """Return the types of the outputs."""
        method = self.plugin.get_output_datatype
        found = [self.call(method, index, types) for index in range(self.plugin.num_outputs)]
        return self._checked(found, method, self.plugin.num_outputs, self.api.DataType)

    def output_shapes(self, extents: list[Any], values: list[Any], count: int) -> list[Any]:
        """Return the extents of the outputs."""
        del values
        method, builder = self.plugin.get_output_dimensions, self.api.IExprBuilder()
        found = [self.call(method, index, extents, builder) for index in range(count)]
        return self._complete(self._checked(found, method, count, self.api.DimsExprs), method)

    def supports(self, position: int, descs: list[Any], num_inputs: int) -> bool:
        """Return whether a combination of types and formats is supported up to a position."""
        method = self.plugin.supports_format_combination
        return bool(called_back(method, position, descs, num_inputs, otherwise=False))

    @property
    def combination_limit(self) -> int:
        """Largest number of combinations that are considered."""
        return int(self.plugin.FORMAT_COMBINATION_LIMIT)

    def workspace(self, inputs: list[Any], outputs: list[Any]) -> int:
        """Return the bytes of scratch memory."""
        plain = [one.desc for one in inputs], [one.desc for one in outputs]
        return int(self.call(self.plugin.get_workspace_size, *plain) or 0)

    def tactics(self) -> list[int]:
        """Return none: version 2 has no tactics."""
        return []

    def aliases(self, count: int) -> dict[str, int]:
        """Return none: version 2 does not alias."""
        del count
        return {}

    def stored(self) -> tuple[list[list[Any]], tuple[bytes, ...]]:
        """Return what an engine file keeps of the plugin."""
        found = self.call(self.plugin.serialize)
        return [], (found.encode() if isinstance(found, str) else bytes(found or b""),)

    def attached(self) -> Face:
        """Return the plugin of an execution context: a clone that is initialized."""
        found = self.call(self.plugin.clone)
        if found is None:
            raise self.failure_of(self.plugin.clone, "it returned None, and must return a plugin")
        if self.call(found.initialize):
            raise self.failure_of(found.initialize, "it did not return 0")
        return FaceV2(found)

    def set_tactic(self, tactic: int) -> None:
        """Do nothing: version 2 has no tactics."""

    def change_shapes(self, inputs: list[Any], outputs: list[Any]) -> None:
        """Configure the plugin for the shapes of the next runs, as TensorRT does it."""
        both = ([dynamic_desc(self.api, one) for one in side] for side in (inputs, outputs))
        self.call(self.plugin.configure_plugin, *both)

    def release(self) -> None:
        """Tell the plugin that its execution context is gone."""
        called_back(self.plugin.terminate, otherwise=None)
        called_back(self.plugin.destroy, otherwise=None)


def face_of(plugin: Any) -> Face:
    """Return a plugin in the form of its interface.

    Raises:
        TypeError: The object is no plugin.
    """
    api, own = getattr(plugin, "_api", None), getattr(plugin, "_own_face", None)
    if own is not None:
        return cast("Face", own(plugin))
    if api is not None:
        if api.has("IPluginV3") and isinstance(plugin, api.IPluginV3):
            return Face(plugin)
        if api.has("IPluginV2DynamicExt") and isinstance(plugin, api.IPluginV2DynamicExt):
            return FaceV2(plugin)
    raise TypeError(
        "incompatible function arguments: a plugin must be an IPluginV3 or IPluginV2DynamicExt "
        f"(found {type(plugin).__name__})"
    )


def known_slots(spec: dryfit.TensorSpec) -> list[Slot]:
    """Return the types and formats that a tensor may have, its own type and LINEAR first."""
    types = [spec.dtype]
    if spec.dtype in EXCHANGED:
        types += [one for one in (*EXCHANGED, dryfit.DataType.INT8) if one is not spec.dtype]
    layouts: list[Layout] = [LINEAR]
    if spec.rank >= _LEAST_RANK:
        layouts += [CHANNELS_LAST, *_vector_formats()]
    shape = [max(extent, 1) for extent in spec.shape]
    return [
        (dtype, layout)
        for layout in layouts
        for dtype in types
        if isinstance(layout, str) or layout.allows(shape, dtype)
    ]


EXCHANGED = (dryfit.DataType.FLOAT, dryfit.DataType.HALF, dryfit.DataType.BF16)
_LEAST_RANK = 3


def _vector_formats() -> Sequence[Layout]:
    return [one for name, one in dryfit.device_formats("GPU").items() if name not in (LINEAR, CHANNELS_LAST)]


def combinations(face: Face, inputs: Sequence[dryfit.TensorSpec], ranks: Sequence[Shape]) -> list[list[Slot]]:
    """Return the combinations of types and formats that a plugin supports, as it is asked about one after another.

    Args:
        face: the plugin.
        inputs: specs of the tensors that it gets, without shape inputs.
        ranks: shapes of its outputs.
    """
    found: list[list[Slot]] = []
    limit = face.combination_limit
    shapes: dict[tuple[dryfit.DataType, ...], list[dryfit.TensorSpec]] = {}
    unknown = (dryfit.DataType.FLOAT, LINEAR)

    def outputs(chosen: Sequence[Slot]) -> list[dryfit.TensorSpec]:
        types = tuple(dtype for dtype, _ in chosen[: len(inputs)])
        if types not in shapes:
            typed = [attrs.evolve(spec, dtype=dtype, value=None) for spec, dtype in zip(inputs, types, strict=True)]
            kinds = face.output_types([of_enum(face.api, "DataType", spec.dtype) for spec in typed])
            shapes[types] = [
                dryfit.TensorSpec(shape, core_dtype(kind)) for shape, kind in zip(ranks, kinds, strict=True)
            ]
        return shapes[types]

    count = len(inputs) + len(ranks)

    def search(chosen: list[Slot]) -> None:
        if len(chosen) == count:
            found.append(chosen)
            return
        position = len(chosen)
        if position < len(inputs):
            candidates = known_slots(inputs[position])
        else:
            spec = outputs(chosen)[position - len(inputs)]
            candidates = [slot for slot in known_slots(spec) if slot[0] is spec.dtype]
        for slot in candidates:
            tried = [*chosen, slot]
            dims = [*(spec.shape for spec in inputs), *ranks]
            descs = [
                tensor_desc(face.api, shape, tried[index] if index < len(tried) else unknown)
                for index, shape in enumerate(dims)
            ]
            if len(found) < limit and face.supports(position, descs, len(inputs)):
                search(tried)

    search([])
    return found
