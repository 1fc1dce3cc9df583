"""Plugins of programs as layers of dryfit: one layer plugin for each name, version and namespace.

A layer's fields have the number of the program's object while the program that made it runs. A build adds a `Record` to
them; an engine file has only that and what the plugin serialized, and the creator makes the object again.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import dryfit
from dryfit_tensorrt.behaviour.dimension_expressions import evaluated
from dryfit_tensorrt.behaviour.monitoring import report, report_failure
from dryfit_tensorrt.behaviour.objects import called_back
from dryfit_tensorrt.behaviour.plugin_faces import (
    EXCHANGED,
    LINEAR,
    Array,
    Face,
    Record,
    Shape,
    Slot,
    combinations,
    dynamic_desc,
    face_of,
    layout_name,
    tensor_desc,
)
from dryfit_tensorrt.behaviour.plugin_fields import fields_of_attributes, loaded_fields
from dryfit_tensorrt.behaviour.plugin_running import Attached, Run, attached, packed

if TYPE_CHECKING:
    from dryfit_tensorrt.namespace import Namespace

Fields = Mapping[str, Any]

INSTANCE, INTERFACE, SHAPE_INPUTS = "(instance)", "(interface)", "(shape inputs)"
RECORD, DATA = "(record)", "(data)"
"""Fields of a layer, under names that no ONNX attribute has."""
_ONNX_SHAPE_INPUTS = "tensorrt_plugin_shape_input_indices"
"""The attribute by which an ONNX node says which inputs are shape inputs. Source: TensorRT's ONNX parser."""
_RUN = "(run)"

_OBJECTS: dict[int, Any] = {}
_NUMBERS = itertools.count(1)


def _kept(plugin: Any, owner: Any = None) -> int:
    """Keep an object under a new number, for as long as its owner exists; without an owner see `adopt`."""
    number = next(_NUMBERS)
    _OBJECTS[number] = plugin
    if owner is not None:
        weakref.finalize(owner, _forget, number)
    return number


def _forget(number: int) -> None:
    _OBJECTS.pop(number, None)


def plugin_of(layer: Any) -> Any:
    """Return the program's object behind a layer of dryfit, or None."""
    return _OBJECTS.get(layer.fields.get(INSTANCE, 0))


def plugin_layers(network: Any) -> Iterator[Any]:
    """Yield the layers of a network of dryfit that plugins of programs implement."""
    for layer in network.layers:
        if layer.kind == "plugin" and (INTERFACE in layer.fields or RECORD in layer.fields):
            yield layer


class ProgramPlugin(dryfit.LayerPlugin):
    """The plugins of programs that have one name, version and namespace.

    Args:
        api: names of the version in which a creator was registered.
        key: name, version and namespace.
    """

    def __init__(self, api: Namespace, key: tuple[str, str, str]) -> None:
        self.plugin_name, self.plugin_version, self.plugin_namespace = key
        self._api = api

    def output_specs(self, fields: Fields, inputs: Sequence[dryfit.TensorSpec | None]) -> Sequence[dryfit.TensorSpec]:
        """Return what the plugin says of its outputs."""
        record = _record(fields) or self._face(fields).described(inputs, _shape_inputs(fields))
        tensors = [spec.shape for spec in record.tensors(inputs)]
        values = [None if spec is None else spec.value for spec in record.values(inputs)]
        steps = evaluated(record.nodes, tensors, values, {})
        return [
            dryfit.TensorSpec(_open_shape(steps, places), dryfit.DataType[dtype])
            for places, dtype in zip(record.shapes, record.types, strict=True)
        ]

    def format_combinations(
        self, fields: Fields, inputs: Sequence[dryfit.TensorSpec | None]
    ) -> Sequence[Sequence[Slot]]:
        """Return what the plugin supports, or what the build chose."""
        record = _record(fields)
        if record is not None and record.slots:
            return [_all_slots(record, inputs, record.outer_layouts())]
        face = self._face(fields)
        record = face.described(inputs, _shape_inputs(fields))
        specs = [*record.tensors(inputs), *self.output_specs(fields, inputs)]
        found: list[list[Slot]] = []
        for slots in supported_slots(face, record, inputs):
            outer = _outer_slots(slots, specs)
            if outer not in found:
                found.append(outer)
        return [_all_slots(record, inputs, one) for one in found]

    def configure(
        self, fields: Fields, inputs: Sequence[dryfit.TensorSpec | None], outputs: Sequence[dryfit.TensorSpec]
    ) -> Mapping[str, Any]:
        """Return the plugin, ready to run at these shapes."""
        record = _record(fields)
        if record is None or not record.slots:
            record = self._trial_record(fields, inputs)
        number = cast("int", fields.get(INSTANCE, 0))
        face = self._face(fields)
        plugin = attached(face, record, number) if number else Attached(face, record.tactic)
        return {_RUN: Run(plugin, record, inputs, outputs)}

    def _trial_record(self, fields: Fields, inputs: Sequence[dryfit.TensorSpec | None]) -> Record:
        """The record for a run before the build is done, as a calibration needs: on the types of the inputs.

        Raises:
            PluginError: The plugin supports only INT8, or a method failed.
        """
        face = self._face(fields)
        record = face.described(inputs, _shape_inputs(fields))
        specs = [*record.tensors(inputs), *self.output_specs(fields, inputs)]
        types = [spec.dtype for spec in specs]
        slots = next(
            (one for one in supported_slots(face, record, inputs) if [dtype for dtype, _ in one] == types), None
        )
        if slots is None:
            raise dryfit.PluginError(
                "The plugin cannot run before the build is done",
                where=f"plugin {self.plugin_name!r}",
                found=f"it does not support {', '.join(dtype.name for dtype in types)}",
                remedy="Support FP32 as well, or set dynamic ranges instead of calibrating",
            )
        record.slots = record.outside = [[dtype.name, layout_name(layout)] for dtype, layout in slots]
        record.scales = [1.0] * len(slots)
        descs = [
            dynamic_desc(face.api, tensor_desc(face.api, spec.shape, slot))
            for spec, slot in zip(specs, slots, strict=True)
        ]
        count = len(record.tensors(inputs))
        face.configure(descs[:count], descs[count:])
        record.workspace = face.workspace(descs[:count], descs[count:])
        record.aliases = face.aliases(len(record.types))
        record.tactic = next(iter(face.tactics()), 0)
        return record

    def enqueue(self, fields: Fields, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """Run the plugin."""
        return fields[_RUN].run(inputs)  # type: ignore[no-any-return]

    def serialized_fields(self, fields: Fields) -> Fields:
        """Return the fields without the number of the object, which is of this process."""
        if INTERFACE in fields and RECORD not in fields:
            raise dryfit.PluginError(
                "A network with a plugin of a TensorRT program cannot be stored; an engine can",
                where=f"plugin {self.plugin_name!r}",
                remedy="Build an engine from it",
            )
        return {name: value for name, value in fields.items() if name not in (INSTANCE, INTERFACE)}

    def _face(self, fields: Fields) -> Face:
        """The plugin of a layer, made by the creator if the layer was imported or loaded."""
        plugin = _OBJECTS.get(cast("int", fields.get(INSTANCE, 0)))
        if plugin is None:
            creator = creator_of(self._api, self.key)
            record = _record(fields)
            if record is not None:
                plugin = loaded_plugin(creator, self.plugin_name, record, fields[DATA])
            else:
                plugin = _imported_plugin(creator, self.plugin_name, fields)
                # The dictionary is the layer's own: every later question is then about the same object.
                own = cast("dict[str, Any]", fields)
                own[INSTANCE], own[INTERFACE] = _kept(plugin), face_of(plugin).interface
        return face_of(plugin)


def supported_slots(face: Face, record: Record, inputs: Sequence[dryfit.TensorSpec | None]) -> list[list[Slot]]:
    """Return the combinations of types and formats that a plugin supports."""
    tensors = record.tensors(inputs)
    steps = evaluated(record.nodes, [spec.shape for spec in tensors], (), {})
    return combinations(face, tensors, [_open_shape(steps, places) for places in record.shapes])


def _outer_slots(slots: Sequence[Slot], specs: Sequence[dryfit.TensorSpec]) -> list[Slot]:
    """A combination as dryfit has it: where INT8 stands for real numbers, the conversions are part of the layer."""
    return [
        (dryfit.DataType.FLOAT, LINEAR) if _is_implicit(slot, spec) else slot
        for slot, spec in zip(slots, specs, strict=True)
    ]


def _is_implicit(slot: Slot, spec: dryfit.TensorSpec) -> bool:
    return slot[0] is dryfit.DataType.INT8 and spec.dtype in EXCHANGED


def _record(fields: Fields) -> Record | None:
    text = fields.get(RECORD)
    return None if text is None else Record.from_text(str(text))


def _shape_inputs(fields: Fields) -> list[int]:
    return [int(one) for one in fields.get(SHAPE_INPUTS, fields.get(_ONNX_SHAPE_INPUTS, ()))]


def _open_shape(steps: Sequence[int | None], places: Sequence[int]) -> Shape:
    found = (steps[place] for place in places)
    return tuple(-1 if extent is None else extent for extent in found)


def _all_slots(record: Record, inputs: Sequence[dryfit.TensorSpec | None], slots: Sequence[Slot]) -> list[Slot]:
    """Slots of all inputs of a layer: shape inputs, and those that are absent, stay as they are."""
    given = iter(slots)
    beside = {*record.shape_inputs, *record.absent}
    own: list[Slot] = [
        (dryfit.DataType.FLOAT if spec is None else spec.dtype, LINEAR) if index in beside else next(given)
        for index, spec in enumerate(inputs)
    ]
    return [*own, *given]


# Creators -------------------------------------------------------------------------------------------------------------


def creator_of(api: Namespace, key: tuple[str, str, str]) -> Any:
    """Return the registered creator of a plugin.

    Raises:
        PluginError: None is registered.
    """
    creators = api.state.get("creators", {})
    if key not in creators:
        name, version, namespace = key
        raise dryfit.PluginError(
            "No creator is registered for the plugin",
            found=f"{name!r}, version {version!r}, namespace {namespace!r}",
            allowed=", ".join(repr(one[0]) for one in creators) or "no creator is registered",
            remedy="Register it first: get_plugin_registry().register_creator(creator, namespace)",
        )
    return creators[key]


def _created(creator: Any, make: Callable[..., Any], *arguments: Any) -> Any:
    plugin = called_back(make, *arguments, otherwise=None)
    if plugin is None:
        raise dryfit.PluginError(
            f"The creator of plugin {creator.name!r} returned no plugin from {make.__name__}",
            found="None, or an exception, which was printed on stderr",
            remedy="Fix the creator, or the fields",
        )
    return plugin


def _imported_plugin(creator: Any, name: str, fields: Fields) -> Any:
    """The plugin of an ONNX node whose attributes are the fields."""
    api = creator._api
    collection = fields_of_attributes(api, creator.field_names, fields)
    if isinstance(creator, api.IPluginCreator):
        return _created(creator, creator.create_plugin, name, collection)
    build = api.TensorRTPhase.BUILD
    if isinstance(creator, api.IPluginCreatorV3Quick):
        return _created(creator, creator.create_plugin, name, creator.plugin_namespace, collection, build)
    return _created(creator, creator.create_plugin, name, collection, build)


def loaded_plugin(creator: Any, name: str, record: Record, contents: Any) -> Any:
    """Return the plugin that an engine keeps.

    Args:
        creator: its creator.
        name: name of the layer.
        record: of the layer.
        contents: what the plugin serialized.

    Raises:
        PluginError: The creator failed.
    """
    api = creator._api
    if record.interface == "V2":
        return _created(creator, creator.deserialize_plugin, name, contents[0])
    collection, run = loaded_fields(api, record.fields, contents), api.TensorRTPhase.RUNTIME
    if isinstance(creator, api.IPluginCreatorV3Quick):
        arguments = (creator.name, creator.plugin_namespace, collection, run)
        return _created(creator, creator.create_plugin, *arguments)
    return _created(creator, creator.create_plugin, name, collection, run)


# Networks -------------------------------------------------------------------------------------------------------------


def add_plugin_v3(self: Any, inputs: Sequence[Any], shape_inputs: Sequence[Any], plugin: Any) -> Any:
    """Add a layer that a plugin of version 3 implements; None and a message where that is not possible."""
    return added_layer(self, inputs, shape_inputs, plugin)


def add_plugin_v2(self: Any, inputs: Sequence[Any], plugin: Any) -> Any:
    """Add a layer that a plugin of version 2 implements; None and a message where that is not possible."""
    if isinstance(plugin, self._api.IPluginV2) and hasattr(plugin, "_installed"):
        name, version, namespace = plugin._installed
        return _tried(
            self,
            lambda: self._layer(
                self._core.add_plugin(
                    [one._core for one in inputs],
                    name,
                    plugin._fields,
                    plugin_version=version,
                    plugin_namespace=namespace,
                ),
                "IPluginV2Layer",
            ),
        )
    return added_layer(self, inputs, (), plugin, "IPluginV2Layer")


def added_layer(
    network: Any, inputs: Sequence[Any], shape_inputs: Sequence[Any], plugin: Any, kind: str = "IPluginV3Layer"
) -> Any:
    """Add a layer that a plugin implements; None and a message where that is not possible."""
    face = face_of(plugin)

    def add() -> Any:
        key = face.key
        dryfit.register_layer_plugin(ProgramPlugin(network._api, key))
        indices = tuple(range(len(inputs), len(inputs) + len(shape_inputs)))
        fields = {INSTANCE: _kept(plugin, network), INTERFACE: face.interface, SHAPE_INPUTS: indices}
        name, version, namespace = key
        tensors = [one._core for one in (*inputs, *shape_inputs)]
        core = network._core.add_plugin(tensors, name, fields, plugin_version=version, plugin_namespace=namespace)
        return network._layer(core, kind)

    return _tried(network, add)


def _tried(network: Any, add: Callable[[], Any]) -> Any:
    try:
        return add()
    except dryfit.DryfitError as error:
        report_failure(network, error)
        return None


def adopt(network: Any) -> None:
    """Keep the plugins that an import made as long as the network exists."""
    for layer in plugin_layers(network._core):
        number = cast("int", layer.fields.get(INSTANCE, 0))
        if number in _OBJECTS and number not in network._kept:
            network._kept.append(number)
            weakref.finalize(network, _forget, number)


# Builds and engines ---------------------------------------------------------------------------------------------------


def finish_build(engine: dryfit.Engine) -> None:
    """Configure the plugins of a new engine, choose their tactics, and record what a run needs.

    Raises:
        PluginError: A plugin failed.
    """
    layers = list(plugin_layers(engine.plan.network))
    if not layers:
        return
    bounds = _bounds(engine)
    network = engine.plan.network
    allows_int8 = "INT8" in engine.plan.settings["flags"] and not network.is_strongly_typed
    for layer in layers:
        _finish(layer, bounds, allows_int8=allows_int8)


def _bounds(engine: dryfit.Engine) -> list[Mapping[str, dryfit.TensorSpec]]:
    """Specs of all tensors at the smallest, usual and largest shapes of the first profile."""
    network = engine.plan.network
    names = [tensor.name for tensor in network.inputs if -1 in tensor.shape]
    shapes = {name: engine.get_tensor_profile_shape(name, 0) for name in names}
    return [engine.tensor_specs({name: shapes[name][index] for name in names}) for index in range(3)]


def _finish(layer: Any, bounds: Sequence[Mapping[str, dryfit.TensorSpec]], *, allows_int8: bool) -> None:
    adapter = cast("ProgramPlugin", layer.implementation())
    face = adapter._face(layer.fields)
    inputs = [None if tensor is None else tensor.spec for tensor in layer.inputs]
    record = face.described(inputs, _shape_inputs(layer.fields))
    tensors = [*record.tensors(layer.inputs), *layer.outputs]
    slots = _chosen_slots(layer, supported_slots(face, record, inputs), tensors, allows_int8=allows_int8)
    specs = [tensor.spec for tensor in tensors]
    record.slots = [[dtype.name, layout_name(layout)] for dtype, layout in slots]
    record.outside = [[dtype.name, layout_name(layout)] for dtype, layout in _outer_slots(slots, specs)]
    record.types = [tensor.dtype.name for tensor in layer.outputs]
    record.scales = [
        _scale(tensor) or 1.0 if slot[0] is dryfit.DataType.INT8 else 1.0
        for tensor, slot in zip(tensors, slots, strict=True)
    ]
    descs = [
        dynamic_desc(
            face.api, tensor_desc(face.api, tensor.shape, slot, scale), [one[tensor.name].shape for one in bounds]
        )
        for tensor, slot, scale in zip(tensors, slots, record.scales, strict=True)
    ]
    count = len(record.tensors(inputs))
    face.configure(descs[:count], descs[count:])
    record.workspace = face.workspace(descs[:count], descs[count:])
    record.aliases = face.aliases(len(record.types))
    tactics = face.tactics()
    if len(tactics) > 1:
        usual = [None if tensor is None else bounds[1][tensor.name] for tensor in layer.inputs]
        outputs = [bounds[1][tensor.name] for tensor in layer.outputs]
        record.tactic = _fastest(face, record, tactics, usual, outputs)
    elif tactics:
        record.tactic = tactics[0]
    record.fields, contents = face.stored()
    layer.fields = {**layer.fields, RECORD: record.to_text(), DATA: contents}


def _chosen_slots(
    layer: Any, supported: Sequence[Sequence[Slot]], tensors: Sequence[dryfit.Tensor], *, allows_int8: bool
) -> Sequence[Slot]:
    """The combination that the plugin gets: INT8 where that is possible, else the types that the build gave the layer.

    Raises:
        PluginError: The plugin supports only INT8, and that is not possible.
    """
    specs = [tensor.spec for tensor in tensors]
    types = [spec.dtype for spec in specs]

    def fits(slots: Sequence[Slot], *, implicit: bool) -> bool:
        inner = [_is_implicit(slot, spec) for slot, spec in zip(slots, specs, strict=True)]
        if any(inner) is not implicit or [dtype for dtype, _ in _outer_slots(slots, specs)] != types:
            return False
        return all(_scale(tensor) is not None for tensor, one in zip(tensors, inner, strict=True) if one)

    for implicit in (True, False) if allows_int8 else (False,):
        for slots in supported:
            if fits(slots, implicit=implicit):
                return slots
    raise layer.problem(  # type: ignore[no-any-return]
        "The plugin does not support the types of its tensors",
        found=", ".join(dtype.name for dtype in types),
        allowed="INT8 with the flag INT8 and a dynamic range of each tensor, or other types that the plugin supports",
        remedy="Cast the inputs, or set the flag and the ranges",
    )


_LARGEST_INT8 = 127


def _scale(tensor: dryfit.Tensor) -> float | None:
    """The INT8 scale of a tensor: of its dynamic range, or of the quantization that gives or takes it; or None."""
    bounds = tensor.dynamic_range
    if bounds is not None:
        return float(np.float32(max(-bounds[0], bounds[1]) / _LARGEST_INT8))
    near = [tensor.producer, *(reader for reader, _ in tensor.consumers)]
    for layer in near:
        if layer is not None and layer.kind in ("quantize", "dequantize") and layer.inputs[1] is not None:
            value = layer.inputs[1].spec.value
            if value is not None and value.size == 1:
                return float(value.reshape(-1)[0])
    return None


_TURNS = 3
"""Runs of each tactic. Our choice: the least time of three, as for the host's kernels."""


def _fastest(
    face: Face,
    record: Record,
    tactics: Sequence[int],
    inputs: Sequence[dryfit.TensorSpec | None],
    outputs: Sequence[dryfit.TensorSpec],
) -> int:
    """The tactic that takes the least time at the usual shapes, on random numbers."""
    generator = np.random.default_rng(0)
    arrays = [
        None
        if spec is None
        else spec.value
        if spec.value is not None
        else (
            generator.standard_normal([max(extent, 1) for extent in spec.shape])
            if spec.dtype.is_floating_point
            else np.zeros([max(extent, 1) for extent in spec.shape])
        ).astype(spec.dtype.numpy)
        for spec in inputs
    ]
    given = iter(record.outer_layouts())
    beside = {*record.shape_inputs, *record.absent}
    contents = [
        array if index in beside or array is None else packed(array, next(given)) for index, array in enumerate(arrays)
    ]
    times: dict[int, float] = {}
    for tactic in tactics:
        plugin = Attached(face, tactic)
        run = Run(plugin, record, inputs, outputs)
        seconds = []
        for _ in range(_TURNS):
            start = time.perf_counter()
            run.run(contents)
            seconds.append(time.perf_counter() - start)
        times[tactic] = min(seconds)
    return min(times, key=times.__getitem__)


def take_plugins(owner: Any, engine: dryfit.Engine, *, just_built: bool = False) -> None:
    """Make the plugins of an engine by their creators, as TensorRT does when it loads one.

    Args:
        owner: the engine of the version; it keeps the plugins.
        engine: the engine of dryfit.
        just_built: whether the objects that the engine was built with may stand in for those without a creator.

    Raises:
        PluginError: A creator is missing, or failed.
    """
    for layer in plugin_layers(engine.plan.network):
        record, before = _record(layer.fields), plugin_of(layer)
        if record is None:
            continue
        try:
            creator = creator_of(owner._api, layer.key)
        except dryfit.PluginError as error:
            if not just_built or before is None:
                raise layer.problem(
                    "The engine needs a plugin whose creator is not registered",
                    found=error.found,
                    allowed=error.allowed,
                    remedy=error.remedy,
                ) from None
            report(owner, "WARNING", f"{error}. The engine can run, but its file cannot be loaded without the creator")
            plugin = before
        else:
            plugin = loaded_plugin(creator, layer.name, record, layer.fields[DATA])
        layer.fields = {**layer.fields, INSTANCE: _kept(plugin, owner)}


# Layer plugins of installed packages ----------------------------------------------------------------------------------


def installed_creators(api: Namespace) -> dict[tuple[str, str, str], Any]:
    """Return creators, of version 2, of the layer plugins that are installed."""
    found: dict[tuple[str, str, str], Any] = api.state.setdefault("installed", {})
    for key, plugin in dryfit.installed_layer_plugins().items():
        if key not in found and not isinstance(plugin, ProgramPlugin):
            found[key] = _installed_creator(api, plugin)
    return found


def _installed_creator(api: Namespace, plugin: dryfit.LayerPlugin) -> Any:
    declared = plugin.declared_fields or {}

    def create(name: str, field_collection: Any) -> Any:
        del name
        made = object.__new__(api.IPluginV2)
        made._installed, made._fields = plugin.key, {}
        for field in field_collection or ():
            if field.name not in declared:
                continue
            kind, data = declared[field.name].kind, field.data
            value = data.tobytes().decode() if field.type.name == "CHAR" else data
            made._fields[field.name] = value if isinstance(value, str) else _value_of(kind, data)
        return made

    creator = object.__new__(api.IPluginCreator)
    fields = [api.PluginField(name) for name in declared]
    vars(creator).update(
        name=plugin.plugin_name,
        plugin_version=plugin.plugin_version,
        plugin_namespace=plugin.plugin_namespace,
        field_names=api.PluginFieldCollection_(fields),
        create_plugin=create,
    )
    return creator


def _value_of(kind: Any, data: Any) -> Any:
    """The entries of a field in the form of a layer plugin's field."""
    if kind in (int, float, bool):
        return kind(data.reshape(-1)[0])
    return data if kind is np.ndarray else tuple(data.tolist())
