"""Tensors of a network, and the shape-and-type records that inference works on."""

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
    """Where a network tensor lives: TensorRT's `TensorLocation`."""

    DEVICE = "device"
    HOST = "host"


@attrs.frozen
class TensorSpec:
    """What shape inference knows of a tensor: its shape, its type and, for constants, its value.

    Attributes:
        shape: extents; -1 where unknown until run time.
        dtype: element type.
        value: the contents where they are known at build time, an array of exactly this shape and type.
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
        """The number of elements, with each dynamic extent counted as 1."""
        return math.prod(max(extent, 1) for extent in self.shape)

    @classmethod
    def of(cls, value: np.ndarray[Any, Any]) -> TensorSpec:
        """The spec of a known array."""
        return cls(value.shape, DataType.from_numpy(value.dtype), value)


def _noted(tensor: Tensor, attribute: attrs.Attribute[Any], value: Any) -> Any:
    """Let the network find the tensor by its new name."""
    if attribute.name == "name":
        tensor.network.note_name(tensor, value)
    return value


# The hook stands here and not at `name`: attrs then makes a tensor without asking for the hook of each field.
@attrs.define(eq=False, repr=False, slots=False, on_setattr=_noted)
class Tensor(KnownAttributes):
    """One tensor of a network: an input, or an output of a layer.

    `shape` and `dtype` of a layer's output follow from the layer, and are inferred again when it changes.

    Attributes:
        name: unique in the network, which refuses one that another tensor has.
        network: the owner.
        producer: the layer whose output it is; None for a network input.
        output_index: which output of the producer.
        consumers: (layer, input index) pairs, kept by `Layer.set_input` only.
        io_dtype: of a network's input: the type in which the caller gives it, where the network computes on another;
            of an output: the type in which the caller is to find it. None where nothing was stated, or it is the same.
            `dtype = ...` states it.
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
        """Shape, type in which the network computes, and known value, as inferred now."""
        network = self.network
        if network._stale_from is not None:  # noqa: SLF001  asked hundreds of times for each layer
            network.refresh_shapes()
        return self._spec or self._stated

    @property
    def shape(self) -> Shape:
        """Extents; -1 where dynamic."""
        return self.spec.shape

    @shape.setter
    def shape(self, shape: Shape) -> None:
        self._require_input("shape")
        self._spec = attrs.evolve(self._stated, shape=tuple(shape), value=None)
        self.network.touch(0)

    @property
    def dtype(self) -> DataType:
        """Element type. Of an input or output of the network the type on the caller's side can be set.

        Setting it says how the caller gives an input, or finds an output: FLOAT, HALF, BF16 and, with a scale, INT8
        stand for one another in a weakly typed network, which computes as it did, so no other input or output gets
        another type. The stated type is `io_dtype`; layers read an input as what it was made, and an output keeps what
        follows from its layer. An input that was made in INT8 holds whole numbers.

        Raises:
            NetworkError: when set: the tensor is neither input nor output, or an output cannot have the type.
        """
        own = self.spec.dtype
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
        """Names of the formats that the caller's side of a network input or output may have; None for any.

        One `TensorFormat` or name may be set, several, or a bit mask such as `1 << int(TensorFormat.CHW16)`.

        Raises:
            UnknownNameError: when set: no installed device has a format of this name.
            NetworkError: when set: it is none of these, or allows no format.
        """
        return self._allowed_formats

    @allowed_formats.setter
    def allowed_formats(self, formats: AllowedFormats | None) -> None:
        self._allowed_formats = None if formats is None else format_names(formats, f"tensor {self.name!r}")

    def copy_allowed_formats(self, formats: frozenset[str] | None) -> None:
        """Take over what was allowed before; devices that a file names need not be installed."""
        self._allowed_formats = formats

    @property
    def is_network_input(self) -> bool:
        """Whether the network gets this tensor from outside."""
        return self.producer is None

    @property
    def is_constant(self) -> bool:
        """Whether a constant layer produces it."""
        return self.producer is not None and self.producer.kind == "constant"

    @property
    def is_network_output(self) -> bool:
        """Whether `Network.mark_output` was called on it."""
        return self.network.is_output(self)

    @property
    def is_shape_tensor(self) -> bool:
        """Whether it carries dimensions: placed on the host, or a network input that dimensions follow from."""
        return self.location is TensorLocation.HOST or (self.is_network_input and feeds_dimensions(self))

    @property
    def is_execution_tensor(self) -> bool:
        """Whether it carries data rather than dimensions."""
        return not self.is_shape_tensor

    @property
    def dynamic_range(self) -> tuple[float, float] | None:
        """(minimum, maximum) of the values, stated for INT8; None where nothing was. Setting None forgets it.

        The scale is max(|minimum|, |maximum|) / 127.

        Raises:
            NetworkError: when set: it is no pair of two finite numbers, minimum first, or the scale is no binary32
                number, as for a range that holds only zero.
        """
        return self._dynamic_range

    @dynamic_range.setter
    def dynamic_range(self, bounds: tuple[float, float] | None) -> None:
        self._dynamic_range = None if bounds is None else self._checked_range(bounds)

    def set_dynamic_range(self, minimum: float, maximum: float) -> None:
        """Set `dynamic_range`; TensorRT's `setDynamicRange`. Raises what that raises."""
        self.dynamic_range = (minimum, maximum)

    def reset_dynamic_range(self) -> None:
        """Forget the stated range."""
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
        """Name a dynamic dimension; equal names mean equal extents, and a run that gives others is refused."""
        self.dimension_names[index] = name

    def get_dimension_name(self, index: int) -> str | None:
        """The name of a dimension, or None."""
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
