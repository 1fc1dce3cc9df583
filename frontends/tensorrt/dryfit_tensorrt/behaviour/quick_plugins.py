"""`tensorrt.plugin`: plugins made of decorated functions.

`register` describes the outputs, `autotune` the types and formats, `impl` computes on tensors that numpy shares the
memory of. A kernel of `aot_impl` is accepted; it would need a GPU to run.
"""

from __future__ import annotations

import copy
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import define
from dryfit_tensorrt.behaviour import quick_combinations, quick_tensors
from dryfit_tensorrt.behaviour.monitoring import report
from dryfit_tensorrt.behaviour.plugin_faces import Face
from dryfit_tensorrt.behaviour.plugin_fields import PluginFieldCollection, stored_fields
from dryfit_tensorrt.behaviour.plugin_layers import added_layer
from dryfit_tensorrt.behaviour.quick_tensors import Quick, Tensor, TensorDesc, functions
from dryfit_tensorrt.surface.unsupported import UnsupportedError

_RESERVED = ("", "trt", "tensorrt", "std")
"""Namespaces that TensorRT keeps for itself."""
_LAST = ("outputs", "stream", "tactic")
"""Parameters of an implementation after its inputs and attributes."""
_FIELD_TYPES = {int: "INT64", float: "FLOAT64", bool: "INT32", str: "CHAR", bytes: "UNKNOWN"}
_ARRAY_TYPES = {
    np.dtype(np.int8): "INT8",
    np.dtype(np.int16): "INT16",
    np.dtype(np.int32): "INT32",
    np.dtype(np.int64): "INT64",
    np.dtype(np.float32): "FLOAT32",
    np.dtype(np.float64): "FLOAT64",
    np.dtype(np.float16): "UNKNOWN",
    np.dtype(np.bool_): "UNKNOWN",
}
"""Type of an attribute to the type of its field; arrays that have none are kept as bytes."""


@define
class Definition:
    """A registered plugin.

    Attributes:
        key: name, version and namespace.
        describe: the function that describes the outputs.
        inputs: names of its tensors.
        attributes: name of each attribute to its type.
        num_outputs: number of outputs.
        implement, ahead, tune: the other functions, or None.
    """

    key: tuple[str, str, str]
    describe: Callable[..., Any]
    inputs: Sequence[str]
    attributes: Mapping[str, Any]
    num_outputs: int
    implement: Callable[..., Any] | None = None
    ahead: Callable[..., Any] | None = None
    tune: Callable[..., Any] | None = None

    @property
    def title(self) -> str:
        """Namespace and name, as a program writes them."""
        return f"{self.key[2]}::{self.key[0]}"

    def used(self, function: Callable[..., Any]) -> list[str]:
        """Return the attributes that a function takes, in its order."""
        return [name for name in inspect.signature(function).parameters if name in self.attributes]


def plugin_module(api: Any) -> types.ModuleType:
    """Return the module `tensorrt.plugin` of a version; made once."""
    if "plugin" not in api.state:
        api.state["plugin"] = _made(api)
    return api.state["plugin"]  # type: ignore[no-any-return]


def _made(api: Any) -> types.ModuleType:
    module = types.ModuleType("tensorrt.plugin", __doc__)
    names: dict[str, Any] = {}
    for base in (*quick_tensors.CLASSES, *quick_combinations.CLASSES):
        bases = tuple(names.get(one.__name__, one) for one in base.__bases__ if one is not Quick)
        # The class of the version comes after its own base, so that isinstance knows both.
        names[base.__name__] = type(
            base.__name__, (base, *bases), {"_api": api, "_own": module, "__module__": module.__name__}
        )
    names.update(functions(module))
    vars(module).update(names)
    definitions: dict[str, Definition] = {}
    vars(module).update(
        op=_Operators(),
        register=_register(api, module, definitions),
        **{
            name: _decorator(module, definitions, name, attribute)
            for name, attribute in (("impl", "implement"), ("aot_impl", "ahead"), ("autotune", "tune"))
        },
    )
    module._definitions = definitions  # type: ignore[attr-defined]
    return module


class _Operators(types.ModuleType):
    """`tensorrt.plugin.op`: a module for each namespace, with a function for each plugin."""

    def __init__(self) -> None:
        super().__init__("tensorrt.plugin.op")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"tensorrt.plugin.op has no namespace {name!r}: no plugin of it is registered", name=name)


# Decorators -----------------------------------------------------------------------------------------------------------


def _register(api: Any, module: types.ModuleType, definitions: dict[str, Definition]) -> Callable[..., Any]:
    def register(plugin_id: str, lazy_register: bool = False) -> Callable[[Any], Any]:
        """Register a plugin by the function that describes its outputs.

        Args:
            plugin_id: `namespace::name`.
            lazy_register: whether the creator is registered only when the plugin is first used.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            definition = _definition(plugin_id, function)
            if plugin_id in definitions:
                raise ValueError(f"A plugin {plugin_id!r} is registered already")
            definitions[plugin_id] = definition
            name, _, namespace = definition.key
            operators: Any = module.op
            if namespace not in vars(operators):
                setattr(operators, namespace, types.ModuleType(f"tensorrt.plugin.op.{namespace}"))
            setattr(getattr(operators, namespace), name, _operator(api, definition))
            if not lazy_register:
                _creator(api, definition)
            return function

        return decorate

    return register


def _definition(plugin_id: str, function: Callable[..., Any]) -> Definition:
    """What the signature of a function says of a plugin.

    Raises:
        ValueError: The name or the signature is not possible.
    """
    namespace, separator, name = plugin_id.partition("::")
    if not separator or not name or namespace in _RESERVED or "." in plugin_id:
        raise ValueError(
            f"A plugin id must be namespace::name without dots, and the namespace none of {_RESERVED[1:]} "
            f"(found {plugin_id!r})"
        )
    signature, hints = inspect.signature(function), typing.get_type_hints(function)
    inputs: list[str] = []
    attributes: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(f"{plugin_id}: the parameter {parameter} must accept a keyword argument")
        if parameter.name not in hints:
            raise ValueError(f"{plugin_id}: the parameter {parameter.name!r} must have a type annotation")
        if parameter.default is not parameter.empty:
            raise ValueError(f"{plugin_id}: the parameter {parameter.name!r} must not have a default")
        kind = hints[parameter.name]
        if inspect.isclass(kind) and issubclass(kind, TensorDesc):
            if attributes:
                raise ValueError(f"{plugin_id}: tensors must come before attributes (found {signature})")
            inputs.append(parameter.name)
            continue
        if parameter.name in _LAST or not _is_attribute(kind):
            raise ValueError(
                f"{plugin_id}: the attribute {parameter.name!r} of type {kind} is not supported (supported: "
                "int, float, bool, str, bytes and numpy.typing.NDArray; not named outputs, stream or tactic)"
            )
        attributes[parameter.name] = kind
    if not inputs:
        raise ValueError(f"{plugin_id}: the first parameter must be a TensorDesc (found {signature})")
    return Definition((name, "1", namespace), function, inputs, attributes, _num_outputs(plugin_id, hints))


def _is_attribute(kind: Any) -> bool:
    array = _array_type(kind)
    return kind in _FIELD_TYPES if array is None else array is np.ndarray or array in _ARRAY_TYPES


def _num_outputs(plugin_id: str, hints: Mapping[str, Any]) -> int:
    found = hints.get("return")
    kinds = typing.get_args(found) if typing.get_origin(found) is tuple else (found,)
    if not kinds or not all(inspect.isclass(one) and issubclass(one, TensorDesc) for one in kinds):
        raise ValueError(f"{plugin_id}: the return annotation must be TensorDesc or Tuple[TensorDesc] (found {found})")
    return len(kinds)


def _array_type(kind: Any) -> Any:
    """The numpy type of an annotation `NDArray[type]`; numpy.ndarray without a type; None for anything else."""
    alias = typing.get_origin(kind) or kind
    if hasattr(alias, "__value__"):  # NumPy 2.5 declares NDArray by a `type` statement
        kind = alias.__value__[typing.get_args(kind)] if typing.get_args(kind) else alias.__value__
    if kind is np.ndarray:
        return np.ndarray
    if typing.get_origin(kind) is not np.ndarray:
        return None
    inner = typing.get_args(typing.get_args(kind)[1])
    return np.dtype(inner[0]) if inner and not isinstance(inner[0], typing.TypeVar) else np.ndarray


def _decorator(
    module: types.ModuleType, definitions: dict[str, Definition], name: str, attribute: str
) -> Callable[..., Any]:
    def decorator(plugin_id: str) -> Callable[[Any], Any]:
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            definition = definitions.get(plugin_id)
            if definition is None:
                raise ValueError(f"The plugin {plugin_id!r} is not registered: use tensorrt.plugin.register first")
            _check_signature(definition, function, name)
            setattr(definition, attribute, function)
            return function

        return decorate

    del module
    decorator.__name__ = name
    decorator.__doc__ = {
        "impl": "Set the function that computes a registered plugin on tensors.",
        "aot_impl": "Set the function that compiles a kernel for a registered plugin. It is not called.",
        "autotune": "Set the function that returns the types, formats and tactics of a registered plugin.",
    }[name]
    return decorator


def _check_signature(definition: Definition, function: Callable[..., Any], name: str) -> None:
    """Refuse a function whose parameters are not those that it is called with.

    Raises:
        ValueError: says which parameters it must have.
    """
    parameters = list(inspect.signature(function).parameters)
    used = set(parameters)
    attributes = [one for one in definition.attributes if one in used]
    last = {"impl": ["outputs", "stream"], "aot_impl": ["outputs", "tactic"], "autotune": ["outputs"]}[name]
    if name == "impl" and "tactic" in used:
        last.append("tactic")
    expected = [*definition.inputs, *attributes, *last]
    if parameters != expected:
        raise ValueError(
            f"The parameters of the {name} function of {definition.title} must be ({', '.join(expected)}) "
            f"(found ({', '.join(parameters)}))"
        )


# Plugins and their creators -------------------------------------------------------------------------------------------


def _plugin_class(api: Any) -> Any:
    """The class of the plugins of decorated functions in a version; made once."""
    if "quick plugin" not in api.state:

        class QuickPlugin(api.IPluginV3, api.IPluginV3QuickCore, api.IPluginV3QuickBuild, api.IPluginV3QuickRuntime):  # type: ignore[misc,name-defined]
            """A plugin of decorated functions."""

            _own_face: Any = QuickFace

            def __init__(self, definition: Definition, attributes: Mapping[str, Any]) -> None:
                self._definition, self._attributes = definition, attributes
                self.plugin_name, self.plugin_version, self.plugin_namespace = definition.key
                self._extents: list[Any] = []
                self._tactic = 0
                self._chosen: Any = None

            def get_capability_interface(self, type: Any) -> Any:
                """Return the plugin."""
                del type
                return self

            def clone(self) -> Any:
                """Return a copy."""
                return copy.copy(self)

        api.state["quick plugin"] = QuickPlugin
    return api.state["quick plugin"]


def _creator(api: Any, definition: Definition) -> Any:
    """The creator of a definition, which this call also registers."""
    registry, (name, version, namespace) = api.get_plugin_registry(), definition.key
    found = registry.get_creator(name, version, namespace)
    if found is not None:
        return found

    class QuickCreator(api.IPluginCreatorV3Quick):  # type: ignore[misc,name-defined]
        """Makes plugins of decorated functions."""

        def create_plugin(
            self, name: str, namespace: str, field_collection: Any, phase: Any, quickPluginType: Any = None
        ) -> Any:
            """Return a plugin with these attributes."""
            del name, namespace, phase
            if quickPluginType is not None:
                _check_request(definition, quickPluginType.name)
            values = {
                field.name: _attribute(definition.attributes[field.name], field)
                for field in field_collection
                if field.name in definition.attributes
            }
            return _plugin_class(api)(definition, values)

    creator = QuickCreator()
    creator.name, creator.plugin_version, creator.plugin_namespace = definition.key
    fields = [
        api.PluginField(one, np.array([]), api.PluginFieldType[_field_type(kind)])
        for one, kind in definition.attributes.items()
    ]
    creator.field_names = PluginFieldCollection(fields)
    registry.register_creator(creator, namespace)
    return creator


def _check_request(definition: Definition, request: str) -> None:
    """Refuse a kind of implementation that the plugin lacks, or that cannot run here.

    Raises:
        ValueError: The implementation that is asked for is not defined.
        UnsupportedError: The plugin has only a kernel that is compiled ahead of time.
    """
    if request == "STRICT_JIT" and definition.implement is None:
        raise ValueError(f"The plugin {definition.title} has no implementation: define it with tensorrt.plugin.impl")
    if request == "STRICT_AOT" and definition.ahead is None:
        raise ValueError(f"The plugin {definition.title} has no kernel: define it with tensorrt.plugin.aot_impl")
    _check_implementation(definition)


def _check_implementation(definition: Definition) -> None:
    if definition.implement is not None:
        return
    if definition.ahead is None:
        raise ValueError(f"The plugin {definition.title} has no implementation: define it with tensorrt.plugin.impl")
    raise UnsupportedError(
        f"The kernel of the plugin {definition.title} cannot run",
        found="aot_impl only: its kernel is compiled for a GPU",
        remedy="Define tensorrt.plugin.impl as well; dryfit runs that",
    )


def _field_type(kind: Any) -> str:
    return _FIELD_TYPES[kind] if kind in _FIELD_TYPES else _ARRAY_TYPES.get(_array_type(kind), "UNKNOWN")


def _field(api: Any, name: str, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        kind = _ARRAY_TYPES[value.dtype]
        contents: Any = value.tobytes() if kind == "UNKNOWN" else np.ascontiguousarray(value)
    else:
        kind = _FIELD_TYPES[type(value)]
        own = {"INT64": np.int64, "FLOAT64": np.float64, "INT32": np.int32}.get(kind)
        contents = value.encode() if isinstance(value, str) else value if own is None else np.array([value], own)
    return api.PluginField(name, contents, api.PluginFieldType[kind])


def _attribute(kind: Any, field: Any) -> Any:
    """The value of an attribute from its field."""
    array = _array_type(kind)
    if array is not None:
        if field.type.name == "UNKNOWN" and array is not np.ndarray:
            return np.frombuffer(field.data.tobytes(), array)
        return field.data if array is np.ndarray else field.data.astype(array)
    if kind in (str, bytes):
        contents = field.data.tobytes()
        return contents.decode() if kind is str else contents
    return kind(field.data[0])


def _operator(api: Any, definition: Definition) -> Callable[..., Any]:
    """`op.<namespace>.<name>`: returns what `network.add_plugin` takes."""

    def operator(*inputs: Any, **attributes: Any) -> Any:
        for tensor in inputs:
            if not isinstance(tensor, api.ITensor):
                message = f"{definition.title}: inputs must be ITensor (found {type(tensor).__name__})"
                raise ValueError(message)  # noqa: TRY004  as TensorRT
        if len(inputs) != len(definition.inputs) or list(attributes) != list(definition.attributes):
            raise ValueError(
                f"{definition.title} takes {len(definition.inputs)} tensors, then the attributes "
                f"({', '.join(definition.attributes)}) by name and in this order (found {len(inputs)} tensors and "
                f"({', '.join(attributes)}))"
            )
        for name, value in attributes.items():
            _check_attribute(definition, name, value)
        creator = _creator(api, definition)
        fields = PluginFieldCollection([_field(api, name, value) for name, value in attributes.items()])

        def create(request: Any = None) -> Any:
            name, _, namespace = definition.key
            build = api.TensorRTPhase.BUILD
            plugin = creator.create_plugin(name, namespace, fields, build, request)
            plugin._attributes = dict(attributes)
            return list(inputs), [], plugin

        create._definition = definition  # type: ignore[attr-defined]
        return create

    operator.__name__ = definition.key[0]
    operator.__doc__ = definition.describe.__doc__
    return operator


def _check_attribute(definition: Definition, name: str, value: Any) -> None:
    kind = definition.attributes[name]
    array = _array_type(kind)
    if array is None:
        fits = type(value) is kind
    else:
        fits = isinstance(value, np.ndarray) and array in (np.ndarray, value.dtype)
    if not fits:
        found = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise ValueError(f"{definition.title}: the attribute {name!r} must be {kind} (found {found})")


def add_plugin(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Add the layer of a plugin of `tensorrt.plugin.op`.

    Args:
        self: the network.
        args: what the operator returned, or a tuple (inputs, shape inputs, plugin); then `aot`, whether the kernel
            that is compiled ahead of time is asked for.
        kwargs: the same by name: `tuple`, `func`, `aot`.

    Raises:
        ValueError: The plugin lacks the implementation that is asked for, or has two and none is preferred.
        UnsupportedError: The plugin has only a kernel that is compiled ahead of time.
    """
    given = [*args, *(kwargs[name] for name in ("tuple", "func", "aot") if name in kwargs)]
    what, aot = given[0], given[1] if len(given) > 1 else None
    if isinstance(what, tuple):
        inputs, shape_inputs, plugin = what
        return added_layer(self, inputs, shape_inputs, plugin)
    definition = getattr(what, "_definition", None)
    kinds = self._api.QuickPluginCreationRequest
    request = kinds.UNKNOWN if aot is None else kinds.STRICT_AOT if aot else kinds.STRICT_JIT
    flags = self._api.NetworkDefinitionCreationFlag
    preferred = next((one for one in ("AOT", "JIT") if self.get_flag(flags[f"PREFER_{one}_PYTHON_PLUGINS"])), None)
    if definition is not None:
        if definition.implement and definition.ahead and aot is None and preferred is None:
            raise ValueError(
                f"The plugin {definition.title} has both impl and aot_impl: pass aot to add_plugin, or create the "
                "network with PREFER_JIT_PYTHON_PLUGINS or PREFER_AOT_PYTHON_PLUGINS"
            )
        asked = bool(aot) if aot is not None else preferred == "AOT"
        if asked and definition.ahead and definition.implement:
            report(self, "WARNING", f"The plugin {definition.title} runs its impl: the kernel of aot_impl needs a GPU")
    inputs, shape_inputs, plugin = what(request)
    return added_layer(self, inputs, shape_inputs, plugin)


class QuickFace(Face):
    """A plugin of decorated functions, asked as other plugins are."""

    interface = "QUICK"

    @property
    def key(self) -> tuple[str, str, str]:
        """Name, version and namespace."""
        return self.plugin._definition.key  # type: ignore[no-any-return]

    @property
    def _module(self) -> Any:
        return plugin_module(self.api)

    def described(self, inputs: Any, shape_inputs: Any) -> Any:
        """Return what the functions say of the outputs for inputs of these shapes and types."""
        _check_implementation(self.plugin._definition)
        self.plugin._extents = [spec.shape for spec in inputs if spec is not None]
        self.plugin._types = [spec.dtype for spec in inputs if spec is not None]
        return Face.described(self, inputs, shape_inputs)

    def _inputs(self, types: Sequence[Any], extents: Sequence[Any]) -> list[Any]:
        own, found = self._module, []
        for dtype, shape in zip(types, extents, strict=True):
            desc = own.TensorDesc(own.ShapeExprs.from_tuple(shape), dtype)
            desc._immutable = True
            found.append(desc)
        return found

    def _outputs(self, inputs: Sequence[Any]) -> list[Any]:
        """The descriptions that the registered function returns."""
        plugin = self.plugin
        definition: Definition = plugin._definition
        found = self.call(lambda: definition.describe(*inputs, **plugin._attributes))
        outputs = list(found) if isinstance(found, tuple) else [found]
        self._checked(outputs, definition.describe, definition.num_outputs, TensorDesc)
        for index, desc in enumerate(outputs):
            if desc.is_size_tensor:
                desc.index = index
        return outputs

    def output_types(self, types: list[Any]) -> list[Any]:
        """Return the types of the outputs."""
        own = self._module
        extents = [[own.ShapeExpr(None) for _ in shape] for shape in self.plugin._extents]
        return [desc.dtype for desc in self._outputs(self._inputs(types, extents))]

    def output_shapes(self, extents: list[Any], values: list[Any], count: int) -> list[Any]:
        """Return the extents of the outputs."""
        del values, count
        own = self._module
        symbolic = [[own.ShapeExpr(one) for one in shape] for shape in extents]
        kinds = [self.api.DataType[dtype.name] for dtype in self.plugin._types]
        outputs = self._outputs(self._inputs(kinds, symbolic))
        return [self.api.DimsExprs([one._expr for one in desc.shape_expr]) for desc in outputs]

    def _supported(self, descs: Sequence[Any], num_inputs: int) -> dict[Any, tuple[int, ...]]:
        """Each combination of names of types and formats to its tactics."""
        definition: Definition = self.plugin._definition
        types = [self.api.DataType[dtype.name] for dtype in self.plugin._types]
        own = self._module
        extents = [[own.ShapeExpr(extent) for extent in desc.dims] for desc in descs]
        inputs = self._inputs(types, extents[:num_inputs])
        outputs = self._outputs(inputs)
        if definition.tune is None:
            names = tuple(one.dtype.name for one in (*inputs, *outputs))
            return {(names, ("LINEAR",) * len(names)): ()}
        outputs = [desc.like() if desc.is_aliased else desc for desc in outputs]
        for one, desc in zip((*inputs, *outputs), descs, strict=True):
            one._immutable = False
            one.shape, one.format, one.scale = own.Shape(desc), desc.format, desc.scale
            one._immutable = True
        values = [self.plugin._attributes[name] for name in definition.used(definition.tune)]
        found: dict[Any, tuple[int, ...]] = {}
        for combination in self.call(definition.tune, *inputs, *values, tuple(outputs)) or ():
            for chosen, tactics in combination._combinations():
                found[chosen] = tuple(dict.fromkeys((*found.get(chosen, ()), *tactics)))
        return found

    def supports(self, position: int, descs: list[Any], num_inputs: int) -> bool:
        """Return whether a combination of types and formats is supported up to a position."""
        asked = tuple(zip(*((desc.type.name, desc.format.name) for desc in descs[: position + 1]), strict=True))
        supported = self._supported(descs, num_inputs)
        return any((types[: position + 1], layouts[: position + 1]) == asked for types, layouts in supported)

    @property
    def combination_limit(self) -> int:
        """Largest number of combinations that are considered."""
        return int(self.api.IPluginV3OneBuild.DEFAULT_FORMAT_COMBINATION_LIMIT)

    def configure(self, inputs: list[Any], outputs: list[Any]) -> None:
        """Keep the chosen types and formats."""
        self.plugin._chosen = [one.desc for one in (*inputs, *outputs)]
        self.plugin._num_inputs = len(inputs)

    def workspace(self, inputs: list[Any], outputs: list[Any]) -> int:
        """Return 0: an implementation gets no scratch memory."""
        del inputs, outputs
        return 0

    def tactics(self) -> list[int]:
        """Return the tactics of the chosen combination."""
        descs = self.plugin._chosen
        chosen = tuple(zip(*((desc.type.name, desc.format.name) for desc in descs), strict=True))
        return list(self._supported(descs, self.plugin._num_inputs).get(chosen, ()))

    def aliases(self, count: int) -> dict[str, int]:
        """Return outputs that share the memory of an input."""
        del count
        kinds = [self.api.DataType[dtype.name] for dtype in self.plugin._types]
        own = self._module
        inputs = self._inputs(kinds, [[own.ShapeExpr(None) for _ in shape] for shape in self.plugin._extents])
        places = {id(desc): index for index, desc in enumerate(inputs)}
        sources = [desc.get_aliased() for desc in self._outputs(inputs)]
        return {str(index): places[id(one)] for index, one in enumerate(sources) if one is not None}

    def stored(self) -> tuple[list[list[Any]], tuple[bytes, ...]]:
        """Return the attributes that the implementation uses."""
        definition: Definition = self.plugin._definition
        implement = definition.implement
        names = [] if implement is None else definition.used(implement)
        return stored_fields(_field(self.api, name, self.plugin._attributes[name]) for name in names)

    def attached(self) -> Face:
        """Return the plugin of an execution context."""
        return QuickFace(copy.copy(self.plugin))

    def set_tactic(self, tactic: int) -> None:
        """Keep the tactic to use."""
        self.plugin._tactic = tactic

    def change_shapes(self, inputs: list[Any], outputs: list[Any]) -> None:
        """Do nothing: an implementation gets the shapes with its tensors."""

    def enqueue(self, *arguments: Any) -> None:
        """Run the implementation."""
        input_descs, output_descs, inputs, outputs, _, stream = arguments
        definition: Definition = self.plugin._definition
        if definition.implement is None:
            _check_implementation(definition)
        own = self._module
        sources = [own.Tensor._of(desc, address) for desc, address in zip(input_descs, inputs, strict=True)]
        results = [own.Tensor._of(desc, address) for desc, address in zip(output_descs, outputs, strict=True)]
        _alias(sources, results)
        implement: Any = definition.implement
        values = [self.plugin._attributes[name] for name in definition.used(implement)]
        last = (stream, self.plugin._tactic) if "tactic" in inspect.signature(implement).parameters else (stream,)
        self.call(implement, *sources, *values, tuple(results), *last)


def _alias(sources: Sequence[Tensor], results: Sequence[Tensor]) -> None:
    for result in results:
        for source in sources:
            if result.data_ptr == source.data_ptr:
                result._aliased_to, source._aliased_to = source, result
    for tensor in (*sources, *results):
        tensor._immutable = True
