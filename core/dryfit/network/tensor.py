"""Tensors of a network, and the shape and type records that inference uses."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from dryfit.errors import NetworkError
from dryfit.network.attribute_names import KnownAttributes, refusing_unknown
from dryfit.network.data_types import EXCHANGED_TYPES, STAND_IN_TYPES, DataType
from dryfit.network.shape_inputs import feeds_dimensions
from dryfit.network.tensor_format import AllowedFormats, format_names

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.network import Network

Array = np.ndarray[Any, Any]

Shape = tuple[int, ...]
"""Extents of the axes; -1 where a dimension is dynamic."""


_LARGEST_INT8 = 127
"""The magnitude that the end of a dynamic range becomes in INT8."""


class TensorLocation(enum.Enum):
    """Memory that holds a network tensor; TensorRT's `TensorLocation`."""

    DEVICE = "device"
    HOST = "host"


@attrs.frozen
class TensorSpec:
    """Shape and type of a tensor as inferred, and its value if it is a constant.

    Attributes:
        shape: extents; -1 if unknown until run time.
        dtype: element type.
        value: the contents, as an array of exactly this shape and type. None: not known at build time.
    """

    shape: Shape
    dtype: DataType
    value: np.ndarray[Any, Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether no dimension is dynamic."""
        return not self.shape or min(self.shape) >= 0

    @property
    def least_elements(self) -> int:
        """Number of elements, counting each dynamic extent as 1."""
        return math.prod(max(extent, 1) for extent in self.shape)

    @classmethod
    def of(cls, value: np.ndarray[Any, Any]) -> TensorSpec:
        """Return the spec of a known array."""
        return cls(value.shape, DataType.from_numpy(value.dtype), value)


def fits_declared(shape: Shape, declared: Shape) -> bool:
    """Return whether a shape has the declared rank and extents; -1 stands for any extent."""
    return len(shape) == len(declared) and all(one in (-1, given) for one, given in zip(declared, shape, strict=True))


def _noted(tensor: Tensor, attribute: attrs.Attribute[Any], value: Any) -> Any:
    """Let the network find the tensor by its new name."""
    if attribute.name == "name":
        tensor.network.note_name(tensor, value)
    return value


# The hook stands here and not at `name`: attrs then makes a tensor without asking for the hook of each field.
@attrs.define(eq=False, repr=False, slots=False, on_setattr=_noted)
class Tensor(KnownAttributes):
    """A tensor of a network: a network input, or an output of a layer.

    `shape` and `dtype` of a layer's output are inferred from the layer, and inferred again when it changes.

    Attributes:
        name: unique in the network; a name that another tensor has raises an error.
        network: the network that owns the tensor.
        producer: the layer that produces the tensor; None for a network input.
        output_index: index of the tensor among the producer's outputs.
        consumers: (layer, input index) pairs; maintained by `Layer.set_input` only.
        io_dtype: type of a network input or output on the caller's side, if it differs from the type that the network
            computes with. None: not set, or the same type. Set by `dtype = ...`.
        location: DEVICE, or HOST for shape tensors.
        dimension_names: axis to symbolic name, for dynamic dimensions.
    """

    name: str
    network: Network = attrs.field(repr=False)
    producer: Layer | None = attrs.field(default=None, repr=False)
    output_index: int = 0
    consumers: list[tuple[Layer, int]] = attrs.field(factory=list, repr=False)
    io_dtype: DataType | None = None
    location: TensorLocation = TensorLocation.DEVICE
    dimension_names: dict[int, str] = attrs.field(factory=dict)
    _spec: TensorSpec | None = None
    _dynamic_range: tuple[float, float] | None = None
    _allowed_formats: frozenset[str] | None = None

    def __repr__(self) -> str:
        known = "of no known shape" if self._spec is None else f"{self._spec.dtype.name} {self._spec.shape}"
        return f"<Tensor {self.name!r}: {known}>"

    @property
    def spec(self) -> TensorSpec:
        """Currently inferred shape, type in which the network computes, and value if known."""
        network = self.network
        if network._stale_from is not None:  # noqa: SLF001  asked hundreds of times for each layer
            network.refresh_shapes()
        return self._spec or self._stated

    @property
    def shape(self) -> Shape:
        """Extents; -1 if dynamic."""
        return self.spec.shape

    @shape.setter
    def shape(self, shape: Shape) -> None:
        self._require_input("shape")
        self._spec = attrs.evolve(self._stated, shape=tuple(shape), value=None)
        self.network.touch(0)

    @property
    def dtype(self) -> DataType:
        """Element type. For a network input or output, the type on the caller's side can be set.

        Setting it defines the type in which the caller provides an input or reads an output. In a weakly typed network,
        FLOAT, HALF, BF16 and, with a scale, INT8 are interchangeable: the network computes as before, and no other
        input or output changes its type. The type set is `io_dtype`; layers still read an input in the type it was
        created with, and an output keeps the type inferred from its layer. An input created as INT8 holds whole
        numbers.

        Raises:
            NetworkError: On setting, the tensor is neither a network input nor a network output, or an output cannot
                have the type.
        """
        network = self.network  # as in `spec`, which the rest asks for as often
        if network._stale_from is not None:  # noqa: SLF001
            network.refresh_shapes()
        own = (self._spec or self._stated).dtype
        return own if self.producer is not None else self.io_dtype or own

    @dtype.setter
    def dtype(self, dtype: DataType) -> None:
        if self.is_network_output and self.producer is not None:
            self._state_io_dtype(dtype)
            return
        self._require_input("dtype")
        own = self._stated.dtype
        if own in EXCHANGED_TYPES and dtype in STAND_IN_TYPES and not self.network.is_strongly_typed:
            self.io_dtype = dtype if dtype is not own else None
        else:
            self.io_dtype, self._spec = None, attrs.evolve(self._stated, dtype=dtype, value=None)
        self.network.touch(0)

    @property
    def allowed_formats(self) -> frozenset[str] | None:
        """Names of the formats allowed for a network input or output on the caller's side. None: any format.

        Accepts one `TensorFormat` or name, a collection of these, or a bit mask such as `1 << int(TensorFormat.CHW16)`.

        Raises:
            UnknownNameError: On setting, no installed device has a format of this name.
            NetworkError: On setting, the value is not one of these, or allows no format.
        """
        return self._allowed_formats

    @allowed_formats.setter
    def allowed_formats(self, formats: AllowedFormats | None) -> None:
        self._allowed_formats = None if formats is None else format_names(formats, f"tensor {self.name!r}")

    def copy_allowed_formats(self, formats: frozenset[str] | None) -> None:
        """Copy previously allowed formats; the devices that a file names need not be installed."""
        self._allowed_formats = formats

    @property
    def is_network_input(self) -> bool:
        """Whether the tensor is a network input."""
        return self.producer is None

    @property
    def is_constant(self) -> bool:
        """Whether a constant layer produces the tensor."""
        return self.producer is not None and self.producer.kind == "constant"

    @property
    def is_network_output(self) -> bool:
        """Whether the tensor is marked as an output with `Network.mark_output`."""
        return self.network.is_output(self)

    @property
    def is_shape_tensor(self) -> bool:
        """Whether it carries dimensions: located on the host, or a network input that defines dimensions."""
        return self.location is TensorLocation.HOST or (self.is_network_input and feeds_dimensions(self))

    @property
    def is_execution_tensor(self) -> bool:
        """Whether it carries data rather than dimensions."""
        return not self.is_shape_tensor

    @property
    def dynamic_range(self) -> tuple[float, float] | None:
        """(minimum, maximum) of the values, used for INT8; None if not set. Set to None to clear it.

        The scale is max(|minimum|, |maximum|) / 127.

        Raises:
            NetworkError: On setting, the value is not a pair of finite numbers with the minimum first, or the scale is
                not a valid binary32 number, as for a range that contains only zero.
        """
        return self._dynamic_range

    @dynamic_range.setter
    def dynamic_range(self, bounds: tuple[float, float] | None) -> None:
        self._dynamic_range = None if bounds is None else self._checked_range(bounds)

    def set_dynamic_range(self, minimum: float, maximum: float) -> None:
        """Set `dynamic_range`; TensorRT's `setDynamicRange`. Raises the same errors."""
        self.dynamic_range = (minimum, maximum)

    def reset_dynamic_range(self) -> None:
        """Clear the dynamic range."""
        self.dynamic_range = None

    def _checked_range(self, bounds: tuple[float, float]) -> tuple[float, float]:
        try:
            minimum, maximum = (float(bound) for bound in bounds)
            is_range = np.isfinite(minimum) and np.isfinite(maximum) and minimum <= maximum
            with np.errstate(over="ignore"):
                scale = np.float32(max(-minimum, maximum) / _LARGEST_INT8)
        except (TypeError, ValueError):
            is_range, scale = False, np.float32(0)
        if not (is_range and 0 < scale < np.inf):
            raise NetworkError(
                "A dynamic range must be two finite numbers, minimum first, not both zero",
                where=f"tensor {self.name!r}",
                found=bounds,
                allowed="(minimum, maximum) whose larger magnitude divided by 127 is a binary32 number, or None",
                remedy="Set the range again, or call `reset_dynamic_range`",
            )
        return minimum, maximum

    def set_dimension_name(self, index: int, name: str) -> None:
        """Name a dynamic dimension. Dimensions with equal names must have equal extents in every run."""
        self.dimension_names[index] = name

    def get_dimension_name(self, index: int) -> str | None:
        """Return the name of a dimension, or None."""
        return self.dimension_names.get(index)

    def _state_io_dtype(self, dtype: DataType) -> None:
        """Say in which type the caller is to find this output."""
        own = self.dtype
        may_differ = own in STAND_IN_TYPES and not self.network.is_strongly_typed
        allowed = STAND_IN_TYPES if may_differ else (own,)
        if dtype not in allowed:
            raise NetworkError(
                "This type is not supported for a network output",
                where=f"network output {self.name!r}",
                found=dtype.text,
                allowed=", ".join(one.text for one in allowed),
                remedy="Keep the type of the tensor, or add a cast layer before it",
            )
        self.io_dtype = dtype if may_differ else None

    @property
    def _stated(self) -> TensorSpec:
        """The spec as it stands; that of an input also while layers do not fit it, as several inputs are changed."""
        if self._spec is None:
            raise NetworkError(
                "The shape could not be inferred",
                where=f"tensor {self.name!r}",
                remedy="Call `Network.verify` to list the problems",
            )
        return self._spec

    def _require_input(self, what: str) -> None:
        if self.producer is not None:
            raise NetworkError(
                f"The {what} of a layer's output is determined by the layer and cannot be set",
                where=f"tensor {self.name!r}, output of layer {self.producer.name!r}",
                remedy="Change the layer's parameters, or add a cast or shuffle layer",
            )


Tensor.__setattr__ = refusing_unknown(  # type: ignore[method-assign,assignment]
    Tensor.__setattr__, frozenset({"producer", "output_index", "_spec"})
)
