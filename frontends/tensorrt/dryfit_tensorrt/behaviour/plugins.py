"""Plugins that a program writes: the interfaces, the descriptions of tensors, and the registry.

`plugin_layers` makes layers of them. An exception in a program's method is printed and becomes a failure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import dryfit
from dryfit_tensorrt.behaviour.objects import Base, called_back
from dryfit_tensorrt.behaviour.plugin_layers import ProgramPlugin, installed_creators, plugin_of

_KINDS = {
    "IPluginV3": "PLUGIN",
    "IPluginV3OneCore": "PLUGIN_V3ONE_CORE",
    "IPluginV3OneBuild": "PLUGIN_V3ONE_BUILD",
    "IPluginV3OneBuildV2": "PLUGIN_V3ONE_BUILD",
    "IPluginV3OneRuntime": "PLUGIN_V3ONE_RUNTIME",
    "IPluginV3QuickCore": "PLUGIN_V3QUICK_CORE",
    "IPluginV3QuickBuild": "PLUGIN_V3QUICK_BUILD",
    "IPluginV3QuickAOTBuild": "PLUGIN_V3QUICKAOT_BUILD",
    "IPluginV3QuickRuntime": "PLUGIN_V3QUICK_RUNTIME",
    "IPluginCreator": "PLUGIN CREATOR_V1",
    "IPluginCreatorV3One": "PLUGIN CREATOR_V3ONE",
    "IPluginCreatorV3Quick": "PLUGIN CREATOR_V3QUICK",
    "IPluginResource": "IPluginResource",
}
"""Class to the `kind` of its interface. Source: TensorRT's headers."""


def _required(name: str, parameters: str, text: str) -> Callable[..., Any]:
    """A method that a program must override."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise NotImplementedError(f"{type(self).__name__} must override {name}({parameters})")

    method.__name__ = name
    method.__doc__ = f"{text} To be overridden."
    return method


class InterfaceInfo(Base):
    """Kind and version of an interface."""

    kind = ""
    major = 0
    minor = 0


class IVersionedInterface(Base):
    """An interface that a program implements, and its version."""

    def __init__(self) -> None:
        """Make an object."""

    @property
    def api_language(self) -> Any:
        """PYTHON."""
        return self._api.APILanguage.PYTHON

    @property
    def interface_info(self) -> Any:
        """Kind and version of the interface."""
        names = [cls.__name__ for cls in type(self).__mro__ if cls.__name__ in _KINDS]
        found = object.__new__(self._api.InterfaceInfo)
        found.kind = _KINDS[names[0]] if names else ""
        found.major, found.minor = (2 if names[:1] == ["IPluginV3OneBuildV2"] else 1), 0
        return found


# Version 3 ------------------------------------------------------------------------------------------------------------


class IPluginV3(Base):
    """A plugin: its capabilities are those that `get_capability_interface` returns."""

    def __init__(self) -> None:
        """Make a plugin."""

    get_capability_interface = _required(
        "get_capability_interface", "type", "Return the object that has a capability, a `PluginCapabilityType`."
    )
    clone = _required("clone", "", "Return a copy.")

    def destroy(self) -> None:
        """Receive that the plugin is not used any more."""


class IPluginV3OneCore(Base):
    """Name, version and namespace of a plugin."""

    plugin_name = ""
    plugin_version = ""
    plugin_namespace = ""

    def __init__(self) -> None:
        """Make a plugin."""


class IPluginV3OneBuild(Base):
    """What a build asks of a plugin."""

    DEFAULT_FORMAT_COMBINATION_LIMIT = 100
    num_outputs = 0
    format_combination_limit = 100
    metadata_string = ""
    timing_cache_id = ""

    def __init__(self) -> None:
        """Make a plugin."""

    get_output_data_types = _required("get_output_data_types", "input_types", "Return the type of each output.")
    get_output_shapes = _required(
        "get_output_shapes", "inputs, shape_inputs, expr_builder", "Return the extents of each output."
    )
    supports_format_combination = _required(
        "supports_format_combination",
        "pos, in_out, num_inputs",
        "Return whether the plugin supports the type and format of a tensor, with those of the tensors before it.",
    )
    configure_plugin = _required("configure_plugin", "in, out", "Receive the descriptions of the tensors.")

    def get_workspace_size(self, *descriptions: Any) -> int:
        """Return the bytes of scratch memory that `enqueue` needs."""
        del descriptions
        return 0

    def get_valid_tactics(self) -> list[int]:
        """Return the numbers, above 0, of ways to compute among which the fastest is chosen."""
        return []


class IPluginV3OneBuildV2(Base):
    """What a build asks of a plugin that writes into its inputs."""

    def __init__(self) -> None:
        """Make a plugin."""

    def get_aliased_input(self, output_index: int) -> int:
        """Return the index of the input whose memory an output shares; -1 for none."""
        del output_index
        return -1


class IPluginV3OneRuntime(Base):
    """What a run asks of a plugin."""

    def __init__(self) -> None:
        """Make a plugin."""

    on_shape_change = _required("on_shape_change", "in, out", "Receive the descriptions of the tensors of a run.")
    set_tactic = _required("set_tactic", "tactic", "Receive the tactic to use; 0 if the plugin has none.")
    get_fields_to_serialize = _required(
        "get_fields_to_serialize", "", "Return the fields that an engine file keeps, for the creator."
    )
    enqueue = _required(
        "enqueue",
        "input_desc, output_desc, inputs, outputs, workspace, stream",
        "Compute the outputs; all tensors are given by their address.",
    )
    attach_to_context = _required(
        "attach_to_context", "resource_context", "Return the plugin that an execution context uses, such as a clone."
    )


class IPluginV3QuickCore(Base):
    """Name, version and namespace of a plugin of decorated functions; see `quick_plugins`."""

    plugin_name = ""
    plugin_version = ""
    plugin_namespace = ""

    def __init__(self) -> None:
        """Make a plugin."""


# Version 2 ------------------------------------------------------------------------------------------------------------


class IPluginV2(Base):
    """A plugin of version 2."""

    num_outputs = 0
    plugin_type = ""
    plugin_version = ""
    plugin_namespace = ""

    @property
    def tensorrt_version(self) -> int:
        """Version of TensorRT, as a number."""
        major, minor, patch = map(int, self._api.level.version.split("."))
        return major * 10000 + minor * 100 + patch if major >= 10 else major * 1000 + minor * 100 + patch

    @property
    def serialization_size(self) -> int:
        """Number of bytes that an engine file keeps."""
        return len(self.serialize())

    def initialize(self) -> int:
        """Receive that the plugin is going to be used; returns 0."""
        return 0

    def terminate(self) -> None:
        """Receive that the plugin is not used until it is initialized again."""

    def destroy(self) -> None:
        """Receive that the plugin is not used any more."""


class IPluginV2DynamicExt(Base):
    """A plugin of version 2 for tensors of any shape, to be implemented by a program."""

    FORMAT_COMBINATION_LIMIT = 100

    def __init__(self) -> None:
        """Make a plugin."""

    initialize = IPluginV2.initialize
    terminate = IPluginV2.terminate
    destroy = IPluginV2.destroy
    get_output_datatype = _required("get_output_datatype", "index, input_types", "Return the type of an output.")
    get_output_dimensions = _required(
        "get_output_dimensions", "output_index, inputs, expr_builder", "Return the extents of an output."
    )
    supports_format_combination = IPluginV3OneBuild.supports_format_combination
    configure_plugin = IPluginV3OneBuild.configure_plugin
    get_workspace_size = IPluginV3OneBuild.get_workspace_size
    enqueue = IPluginV3OneRuntime.enqueue
    clone = _required("clone", "", "Return a copy.")

    def serialize(self) -> bytes:
        """Return what an engine file keeps, for the creator; nothing unless overridden."""
        return b""

    def get_serialization_size(self) -> int:
        """Return the number of bytes that `serialize` returns."""
        return len(self.serialize())


# Descriptions of tensors ----------------------------------------------------------------------------------------------


class PluginTensorDesc(Base):
    """Shape, type, format and scale of a tensor."""

    dims: Any = None
    type: Any = None
    format: Any = None
    scale = 0.0

    def __init__(self) -> None:
        self.dims, self.scale = self._api.Dims(), 0.0
        self.type, self.format = self._api.DataType.FLOAT, self._api.TensorFormat.LINEAR


class DynamicPluginTensorDesc(Base):
    """The description of a tensor, and its smallest, usual and largest shape."""

    desc: Any = None
    min: Any = None
    opt: Any = None
    max: Any = None

    def __init__(self) -> None:
        self.desc = self._api.PluginTensorDesc()
        self.min, self.opt, self.max = self._api.Dims(), self._api.Dims(), self._api.Dims()


# Creators and their registry ------------------------------------------------------------------------------------------


class IPluginCreator(Base):
    """Makes plugins of version 2."""

    name = ""
    plugin_version = ""
    plugin_namespace = ""
    field_names: Any = None

    def __init__(self) -> None:
        """Make a creator."""

    @property
    def tensorrt_version(self) -> int:
        """Version of TensorRT, as a number."""
        return int(IPluginV2.tensorrt_version.fget(self))  # type: ignore[attr-defined]

    create_plugin = _required("create_plugin", "name, field_collection", "Return a plugin with these fields.")
    deserialize_plugin = _required(
        "deserialize_plugin", "name, serialized_plugin", "Return the plugin that `serialize` returned the bytes of."
    )


class IPluginCreatorV3One(Base):
    """Makes plugins of version 3."""

    name = ""
    plugin_version = ""
    plugin_namespace = ""
    field_names: Any = None

    def __init__(self) -> None:
        """Make a creator."""

    create_plugin = _required(
        "create_plugin", "name, field_collection, phase", "Return a plugin with these fields, for a `TensorRTPhase`."
    )


class IPluginCreatorV3Quick(Base):
    """Makes the plugins of decorated functions."""

    name = ""
    plugin_version = ""
    plugin_namespace = ""
    field_names: Any = None

    def __init__(self) -> None:
        """Make a creator."""

    create_plugin = _required(
        "create_plugin",
        "name, namespace, field_collection, phase, quickPluginType",
        "Return a plugin with these fields, for a `TensorRTPhase`.",
    )


class IPluginResource(Base):
    """What plugins share through the registry."""

    def __init__(self) -> None:
        """Make a resource."""

    release = _required("release", "", "Receive that nothing uses the resource any more.")
    clone = _required("clone", "", "Return the resource that the registry keeps.")


class IPluginResourceContext(Base):
    """What a plugin can use in an execution context."""

    @property
    def error_recorder(self) -> Any:
        """None."""
        return None

    @property
    def gpu_allocator(self) -> Any:
        """None: plugins allocate memory as the program does."""
        return None


class IPluginRegistry(Base):
    """The creators of plugins, by name, version and namespace."""

    def _creators(self) -> dict[tuple[str, str, str], Any]:
        found: dict[tuple[str, str, str], Any] = self._api.state.setdefault("creators", {})
        return found

    def _all(self) -> list[Any]:
        own = self._creators()
        return [*own.values(), *(one for key, one in installed_creators(self._api).items() if key not in own)]

    def register_creator(self, creator: Any, plugin_namespace: str = "") -> bool:
        """Register a creator; returns False if another one has its name, version and namespace."""
        key = (creator.name, creator.plugin_version, plugin_namespace or creator.plugin_namespace or "")
        if key in self._creators():
            return False
        try:
            dryfit.register_layer_plugin(ProgramPlugin(self._api, key))
        except dryfit.DryfitError as error:
            sys.stderr.write(f"dryfit: register_creator: {error}\n")
            return False
        self._creators()[key] = creator
        return True

    def deregister_creator(self, creator: Any) -> bool:
        """Remove a creator; returns whether it was registered. Engines that are loaded keep their plugins."""
        keys = [key for key, one in self._creators().items() if one is creator]
        for key in keys:
            del self._creators()[key]
        return bool(keys)

    def _find(self, key: tuple[str, str, str]) -> Any:
        return self._creators().get(key) or installed_creators(self._api).get(key)

    def get_creator(self, type: str, version: str, plugin_namespace: str = "") -> Any:
        """Return a creator, or None."""
        return self._find((type, version, plugin_namespace))

    def get_plugin_creator(self, type: str, version: str, plugin_namespace: str = "") -> Any:
        """Return a creator of plugins of version 2, or None."""
        found = self._find((type, version, plugin_namespace))
        return found if isinstance(found, self._api.IPluginCreator) else None

    @property
    def plugin_creator_list(self) -> list[Any]:
        """The creators of plugins of version 2."""
        return [one for one in self._all() if isinstance(one, self._api.IPluginCreator)]

    @property
    def all_creators(self) -> list[Any]:
        """All creators."""
        return self._all()

    @property
    def all_creators_recursive(self) -> list[Any]:
        """All creators; there is no registry above this one."""
        return self._all()

    def acquire_plugin_resource(self, key: str, resource: Any) -> Any:
        """Return the resource of a key; the first call keeps a clone of the resource given."""
        held = self._api.state.setdefault("resources", {})
        if key not in held:
            made = called_back(resource.clone, otherwise=None)
            if made is None:
                return None
            held[key] = [made, 0]
        held[key][1] += 1
        return held[key][0]

    def release_plugin_resource(self, key: str) -> bool:
        """Return a resource; the last call releases it. Returns whether there is one of this key."""
        held = self._api.state.setdefault("resources", {})
        if key not in held:
            return False
        held[key][1] -= 1
        if not held[key][1]:
            called_back(held.pop(key)[0].release, otherwise=None)
        return True


class IPluginV2Layer(Base):
    """A layer that a plugin of version 2 implements."""

    @property
    def plugin(self) -> Any:
        """The plugin."""
        return plugin_of(self._core)


class IPluginV3Layer(Base):
    """A layer that a plugin of version 3 implements."""

    @property
    def plugin(self) -> Any:
        """The plugin."""
        return plugin_of(self._core)
