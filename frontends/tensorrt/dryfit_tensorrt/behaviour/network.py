"""Networks, layers and tensors: views of dryfit's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dryfit
from dryfit_tensorrt.behaviour.monitoring import report, report_failure
from dryfit_tensorrt.behaviour.objects import Base, Scoped
from dryfit_tensorrt.behaviour.plugin_layers import INTERFACE, add_plugin_v2, add_plugin_v3
from dryfit_tensorrt.behaviour.quick_plugins import add_plugin
from dryfit_tensorrt.behaviour.values import core_dtype, from_core, is_narrowed, of_enum, to_core
from dryfit_tensorrt.surface.class_parents import LAYER_CLASSES


def all_formats(api: Any) -> int:
    """Return the mask of every tensor format of a version, the default of `ITensor.allowed_formats`."""
    return sum(1 << int(one) for one in api.TensorFormat)


_CLOSEST_TYPES = {
    "ATTENTION": "ATTENTION_OUTPUT",
}
"""Layers of dryfit that TensorRT has as layers at their borders, to the border that gives their outputs."""
_OTHER_TYPES = {8: "PLUGIN_V2", 10: "PLUGIN_V3", 11: "PLUGIN_V3"}
"""Type of the layers that TensorRT does not have: what stands there in a network of TensorRT's is a plugin."""


class ITensor(Base):
    """A tensor of a network."""

    def __init__(self) -> None:
        raise TypeError("tensorrt.ITensor: No constructor defined!")

    @property
    def _logger(self) -> Any:
        return self._network._logger

    @property
    def shape(self) -> Any:
        """Extents; -1 for a dynamic one. Empty and logged as long as the layers do not allow to infer it."""
        try:
            return self._api.Dims(self._core.shape)
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return self._api.Dims()

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._try(lambda: setattr(self._core, "shape", tuple(map(int, shape))))

    @property
    def dtype(self) -> Any:
        """Type of the elements; of a network output the type that was set for it, where one was."""
        core = self._core
        try:
            stated = core.io_dtype if core.is_network_output else None
            return of_enum(self._api, "DataType", stated or core.dtype)
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return self._api.DataType.FLOAT

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self._try(lambda: setattr(self._core, "dtype", core_dtype(dtype)))

    @property
    def allowed_formats(self) -> int:
        """Bit mask of `TensorFormat`; every format by default."""
        names = self._core.allowed_formats
        formats = self._api.TensorFormat.__members__
        return all_formats(self._api) if names is None else sum(1 << int(formats[one]) for one in names)

    @allowed_formats.setter
    def allowed_formats(self, mask: int) -> None:
        every = all_formats(self._api)
        self._try(lambda: setattr(self._core, "allowed_formats", None if int(mask) & every == every else int(mask)))

    @property
    def dynamic_range(self) -> Any:
        """(minimum, maximum), or None.

        Raises:
            ValueError: On setting, the range is not valid.
        """
        return self._core.dynamic_range

    @dynamic_range.setter
    def dynamic_range(self, bounds: Any) -> None:
        try:
            self._core.dynamic_range = bounds
        except dryfit.DryfitError as error:
            raise ValueError(str(error)) from None

    def set_dynamic_range(self, min: float, max: float) -> bool:
        """Set the range and return whether it is valid."""
        try:
            self._core.set_dynamic_range(min, max)
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return False
        return True

    def get_dimension_name(self, index: int) -> str:
        """Return the name of a dimension; "" without one."""
        return self._core.get_dimension_name(index) or ""

    def _try(self, change: Callable[[], None]) -> None:
        try:
            change()
        except dryfit.DryfitError as error:
            report_failure(self, error)


class ILayer(Base):
    """A layer of a network. `__class__` may be set to the class of its type."""

    def __init__(self) -> None:
        raise TypeError("tensorrt.ILayer: No constructor defined!")

    @property
    def type(self) -> Any:
        """Member of `LayerType`."""
        return self._network._layer_type(self._core)

    @property
    def precision(self) -> Any:
        """Computation type; FLOAT where none is set."""
        return of_enum(self._api, "DataType", self._core.precision or dryfit.DataType.FLOAT)

    @precision.setter
    def precision(self, dtype: Any) -> None:
        try:
            self._core.precision = core_dtype(dtype)
        except dryfit.DryfitError as error:
            report_failure(self, error)

    def set_input(self, index: int, tensor: Any) -> None:
        """Connect an input."""
        try:
            self._core.set_input(index, None if tensor is None else tensor._core)
        except dryfit.DryfitError as error:
            report_failure(self, error)

    def get_input(self, index: int) -> Any:
        """Return the tensor at an input, or None."""
        tensor = self._core.get_input(index)
        return None if tensor is None else self._network._tensor(tensor)

    def get_output(self, index: int) -> Any:
        """Return the tensor at an output, or None."""
        if index >= self._core.num_outputs:
            return None
        tensor = self._core.get_output(index)
        return self._network._tensor(self._network._narrowed.get(tensor, tensor))


class INetworkDefinition(Base, Scoped):
    """A network: layers and tensors."""

    _beyond_tables = frozenset({"__enter__", "__exit__"})
    __enter__ = Scoped.__enter__
    __exit__ = Scoped.__exit__

    def __init__(self) -> None:
        raise TypeError("tensorrt.INetworkDefinition: No constructor defined!")

    @classmethod
    def _of(cls, builder: Any, core: dryfit.Network, flags: int) -> Any:
        self = cls._blank()
        self._builder, self._core, self._flags = builder, core, flags
        self._logger = builder._logger
        self._network = self
        self._tensors = {}
        self._narrowed = {}
        self._kept = []
        self._recorder = None
        self._shape_outputs = []
        self._second_versions = set()
        return self

    def _tensor(self, core: Any) -> Any:
        """The one object that stands for a tensor."""
        found = self._tensors.get(core)
        if found is None:
            found = object.__new__(self._api.ITensor)
            found._core, found._network = core, self
            self._tensors[core] = found
        return found

    def _layer_type(self, core: Any) -> Any:
        name = core.layer_type
        if name == "PLUGIN_V3" and core.fields.get(INTERFACE) == "V2":
            name = "PLUGIN_V2"
        known = self._api.LayerType.__members__
        return known.get(_CLOSEST_TYPES.get(name, name)) or known[_OTHER_TYPES[self._api.major]]

    def _layer(self, core: Any, name: str | None = None) -> Any:
        """A layer in the class of its kind, or in a class given."""
        own = "IAttention" if core.layer_type == "ATTENTION" else LAYER_CLASSES.get(core.layer_type, "ILayer")
        own = own if self._api.has(own) and core.kind not in ("loop", "conditional") else "ILayer"
        return self._view(name or own, core)

    def _control_flow(self, core: Any) -> Any:
        """A loop or a conditional."""
        return self._view("ILoop" if isinstance(core, dryfit.Loop) else "IIfConditional", core)

    def _view(self, name: str, core: Any) -> Any:
        found = object.__new__(getattr(self._api, name))
        found._core, found._network, found._logger = core, self, self._logger
        return found

    # The network --------------------------------------------------------------------------------------------------

    @property
    def builder(self) -> Any:
        """The builder that made the network."""
        return self._builder

    @property
    def flags(self) -> int:
        """Creation flags, a bit mask."""
        return self._flags

    def get_flag(self, flag: Any) -> bool:
        """Return whether a creation flag is set."""
        return bool(self._flags >> int(flag) & 1)

    @property
    def has_implicit_batch_dimension(self) -> bool:
        """Whether the network was made without EXPLICIT_BATCH, in version 8."""
        explicit = self._api.NetworkDefinitionCreationFlag.__members__.get("EXPLICIT_BATCH")
        return self._api.major == 8 and not self._flags >> int(explicit) & 1

    @property
    def has_explicit_precision(self) -> bool:
        """False: the flag has had no effect since version 8.0."""
        return False

    def get_layer(self, index: int) -> Any:
        """Return a layer by index, as an `ILayer`."""
        return self._layer(self._core.get_layer(index), "ILayer") if 0 <= index < self._core.num_layers else None

    def __getitem__(self, index: int) -> Any:
        """Return a layer by index, as an `ILayer`; negative indices count from the end."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"layer index out of range: {index}, the network has {len(self)}")
        return self._layer(self._core.get_layer(index % len(self)), "ILayer")

    def __len__(self) -> int:
        return self._core.num_layers

    def get_input(self, index: int) -> Any:
        """Return a network input by index, or None."""
        return self._tensor(self._core.get_input(index)) if 0 <= index < self._core.num_inputs else None

    def get_output(self, index: int) -> Any:
        """Return a network output by index, or None."""
        return self._tensor(self._core.get_output(index)) if 0 <= index < self._core.num_outputs else None

    def add_input(self, name: str, dtype: Any, shape: Any) -> Any:
        """Add a network input; None and a message where that is not possible."""
        if self.has_implicit_batch_dimension:
            report(
                self,
                "ERROR",
                f"Networks with an implicit batch dimension are not supported (input {name!r}). Remedy: pass "
                "1 << int(NetworkDefinitionCreationFlag.EXPLICIT_BATCH) to create_network, and put the batch first",
            )
            return None
        try:
            return self._tensor(self._core.add_input(name, core_dtype(dtype), tuple(map(int, shape))))
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return None

    def mark_output_for_shapes(self, tensor: Any) -> bool:
        """Mark a tensor that carries dimensions as an output."""
        self._shape_outputs.append(tensor._core)
        self._core.mark_output(tensor._core)
        return True

    def unmark_output_for_shapes(self, tensor: Any) -> bool:
        """Undo `mark_output_for_shapes`."""
        if tensor._core not in self._shape_outputs:
            return False
        self._shape_outputs.remove(tensor._core)
        self._core.unmark_output(tensor._core)
        return True

    def mark_debug(self, tensor: Any) -> bool:
        """Mark a tensor, so that a listener can get it; returns whether it belongs to the network."""
        return self._marked(self._core.mark_debug, tensor)

    def unmark_debug(self, tensor: Any) -> bool:
        """Undo `mark_debug`; returns whether the tensor belongs to the network."""
        return self._marked(self._core.unmark_debug, tensor)

    def _marked(self, mark: Callable[[Any], None], tensor: Any) -> bool:
        try:
            mark(tensor._core)
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return False
        return True

    def remove_tensor(self, tensor: Any) -> None:
        """Undo the mark of a tensor as an output; a tensor that nothing uses has no other trace."""
        self._core.unmark_output(tensor._core)

    def set_weights_name(self, weights: Any, name: str) -> bool:
        """Name weights, so that they can be refitted by name."""
        try:
            return bool(self._core.set_weights_name(np.asarray(to_core(weights)), name))
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return False

    @property
    def error_recorder(self) -> Any:
        """The recorder of errors, or None."""
        return self._recorder

    @error_recorder.setter
    def error_recorder(self, recorder: Any) -> None:
        self._recorder = recorder

    # Layers with forms of their own -------------------------------------------------------------------------------

    def _add(self, add: Callable[[], Any]) -> Any:
        try:
            return from_core(self._api, self, add())
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return None

    def add_constant(self, shape: Any, weights: Any) -> Any:
        """Add a constant; the memory of the weights is read now."""
        return self._add(lambda: self._core.add_constant(tuple(map(int, shape)), to_core(weights)))

    def add_quantize(self, input: Any, scale: Any, output_type: Any = None) -> Any:
        """Add a quantize layer; `output_type` must be passed in version 11 and is INT8 by default before."""
        dtype = self._output_type(output_type, "add_quantize", dryfit.DataType.INT8)
        return self._add(lambda: self._core.add_quantize(input._core, scale._core, dtype))

    def add_dequantize(self, input: Any, scale: Any, output_type: Any = None) -> Any:
        """Add a dequantize layer; `output_type` must be passed in version 11 and is FLOAT by default before."""
        dtype = self._output_type(output_type, "add_dequantize", dryfit.DataType.FLOAT)
        return self._add(lambda: self._core.add_dequantize(input._core, scale._core, dtype))

    def _output_type(self, dtype: Any, method: str, default: Any) -> Any:
        if dtype is None and self._api.major >= 11:
            raise TypeError(f"{method}(): incompatible function arguments: output_type must be passed since version 11")
        return default if dtype is None else core_dtype(dtype)

    add_plugin_v2 = add_plugin_v2
    add_plugin_v3 = add_plugin_v3
    add_plugin = add_plugin

    def add_normalization_v2(self, input: Any, scale: Any, bias: Any, axesMask: int) -> Any:
        """Add a normalization whose scale and bias have the shapes of ONNX 21."""
        found = self._add(
            lambda: self._core.add_normalization_v2(input._core, to_core(scale), to_core(bias), int(axesMask))
        )
        if found is not None:
            self._second_versions.add(found._core)
        return found

    def add_shape(self, input: Any) -> Any:
        """Add a layer that returns the shape of a tensor: INT64, or in version 8 INT32, which takes a cast layer."""
        found = self._add(lambda: self._core.add_shape(input._core))
        if found is not None and is_narrowed(self._api, dryfit.DataType.INT64):
            wide = found._core.get_output(0)
            self._narrowed[wide] = self._core.add_cast(wide, dryfit.DataType.INT32).get_output(0)
        return found


class INormalizationLayer(Base):
    """A normalization."""

    @property
    def is_v2(self) -> bool:
        """Whether `add_normalization_v2` added the layer."""
        return self._core in self._network._second_versions
