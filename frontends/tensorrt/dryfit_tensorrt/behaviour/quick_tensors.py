"""What the functions of `tensorrt.plugin` get and return: descriptions of tensors, their extents, and tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dryfit_tensorrt.behaviour.plugin_faces import CHANNELS_LAST, LINEAR
from dryfit_tensorrt.behaviour.values import core_dtype


class Quick:
    """Something of one version's `tensorrt.plugin`.

    Attributes:
        _api: names of the version.
        _own: the module `tensorrt.plugin` of the version.
    """

    _api: Any
    _own: Any


# Extents as expressions -----------------------------------------------------------------------------------------------


class ShapeExpr(Quick):
    """An extent: made of a number, an `IDimensionExpr`, or another `ShapeExpr`."""

    _is_size = False

    def __init__(self, value: Any = None) -> None:
        if isinstance(value, ShapeExpr):
            self._held, self._is_size = value._expr, value._is_size
        elif isinstance(value, (int, np.integer)):
            self._held = self._api.IExprBuilder().constant(int(value))
        else:
            self._held = value

    @property
    def _expr(self) -> Any:
        return self._held

    def _operation(self, name: str, other: Any) -> ShapeExpr:
        if not isinstance(other, ShapeExpr):
            other = self._own.ShapeExpr(other)
        if self._is_size or other._is_size:
            raise ValueError("Operations on the extent of a size tensor are not permitted")
        if self.is_fake or other.is_fake:
            return self._own.ShapeExpr()  # type: ignore[no-any-return]
        kind = self._api.DimensionOperation[name]
        return self._own.ShapeExpr(self._api.IExprBuilder().operation(kind, self._expr, other._expr))  # type: ignore[no-any-return]

    def __add__(self, other: Any) -> ShapeExpr:
        return self._operation("SUM", other)

    def __sub__(self, other: Any) -> ShapeExpr:
        return self._operation("SUB", other)

    def __mul__(self, other: Any) -> ShapeExpr:
        return self._operation("PROD", other)

    def __floordiv__(self, other: Any) -> ShapeExpr:
        return self._operation("FLOOR_DIV", other)

    def __eq__(self, other: object) -> Any:
        return self._operation("EQUAL", other)

    def __lt__(self, other: Any) -> ShapeExpr:
        return self._operation("LESS", other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_fake(self) -> bool:
        """Whether nothing is known of the extent."""
        return self._held is None and not self._is_size

    @property
    def is_size_tensor(self) -> bool:
        """Whether an output of the plugin states the extent."""
        return self._is_size

    @property
    def is_constant(self) -> bool:
        """Whether the extent is a number.

        Raises:
            RuntimeError: Nothing is known of the extent.
        """
        if self.is_fake:
            raise RuntimeError("Nothing is known of a fake ShapeExpr: ask is_fake first")
        return not self._is_size and bool(self._expr.is_constant())

    def constant_value(self) -> int:
        """Return the number.

        Raises:
            RuntimeError: The extent is not a number.
        """
        if not self.is_constant:
            raise RuntimeError("The ShapeExpr is not constant: ask is_constant first")
        return int(self._expr.get_constant_value())

    def __repr__(self) -> str:
        known = not self.is_fake and self.is_constant
        return f"ShapeExpr[{self.constant_value()}]" if known else f"ShapeExpr[id={id(self)}]"


class SizeTensorShapeExpr(ShapeExpr):
    """The extent that a size tensor states."""

    _is_size = True

    def __init__(self, size_tensor_desc: Any) -> None:
        self._desc, self._held = size_tensor_desc, None

    @property
    def _expr(self) -> Any:
        if self._held is None:
            desc = self._desc
            declare = self._api.IExprBuilder().declare_size_tensor
            self._held = declare(desc.index, desc.opt._expr, desc.upper_bound._expr)
        return self._held


class ShapeExprs(Quick):
    """The extents of a tensor."""

    def __init__(self, length: int) -> None:
        self._extents: list[Any] = [None] * length

    @classmethod
    def from_tuple(cls, shape_exprs: Iterable[Any]) -> Any:
        """Return extents made of expressions and numbers."""
        own = cls._own.ShapeExpr
        found = [one if isinstance(one, ShapeExpr) else own(one) for one in shape_exprs]
        made = cls._own.ShapeExprs(len(found))
        made._extents = found
        return made

    def numel(self) -> Any:
        """Return the number of elements."""
        total = self._own.ShapeExpr(1)
        for extent in self._extents:
            total = total * extent
        return total

    def __iter__(self) -> Iterator[Any]:
        return iter(self._extents)

    def __getitem__(self, index: Any) -> Any:
        return self._extents[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._extents[index] = value if isinstance(value, ShapeExpr) else self._own.ShapeExpr(value)

    def __len__(self) -> int:
        return len(self._extents)

    def __repr__(self) -> str:
        return f"ShapeExprs[{', '.join(map(repr, self._extents))}]"


class Shape(Quick):
    """Extents as numbers; -1 for those that are not known. Of a description also the smallest, usual and largest."""

    def __init__(self, tensor_desc: Any) -> None:
        self._desc = None
        if isinstance(tensor_desc, self._api.DynamicPluginTensorDesc):
            self._desc, dims = tensor_desc, tensor_desc.desc.dims
        elif isinstance(tensor_desc, self._api.PluginTensorDesc):
            dims = tensor_desc.dims
        elif isinstance(tensor_desc, tuple):
            dims = tensor_desc
        else:
            raise ValueError(  # noqa: TRY004  as TensorRT
                "Shape must be made of a tuple, a PluginTensorDesc or a DynamicPluginTensorDesc "
                f"(found {type(tensor_desc).__name__})"
            )
        self._dims = [int(extent) for extent in dims]

    @property
    def is_dynamic(self) -> bool:
        """Whether an extent is not known."""
        return -1 in self._dims

    def numel(self) -> int:
        """Return the number of elements.

        Raises:
            ValueError: An extent is not known.
        """
        if self.is_dynamic:
            raise ValueError(f"The shape {self} has an extent that is not known")
        return int(np.prod(self._dims, dtype=np.int64))

    def _bound(self, name: str) -> tuple[int, ...]:
        if self._desc is None or not self.is_dynamic:
            raise ValueError(f"{name} is only known of a dynamic shape, during a build")
        return tuple(getattr(self._desc, name))

    @property
    def min(self) -> tuple[int, ...]:
        """Smallest extents."""
        return self._bound("min")

    @property
    def opt(self) -> tuple[int, ...]:
        """Usual extents."""
        return self._bound("opt")

    @property
    def max(self) -> tuple[int, ...]:
        """Largest extents."""
        return self._bound("max")

    def __iter__(self) -> Iterator[int]:
        return iter(self._dims)

    def __getitem__(self, index: Any) -> Any:
        return self._dims[index]

    def __setitem__(self, index: int, extent: int) -> None:
        self._dims[index] = int(extent)

    def __len__(self) -> int:
        return len(self._dims)

    def __str__(self) -> str:
        return f"Shape{tuple(self._dims)}"


# Tensors --------------------------------------------------------------------------------------------------------------


class TensorDesc(Quick):
    """Type and extents of a tensor; while a build chooses types and formats, also shape, format and scale.

    The descriptions that a function gets cannot be changed; `like` returns a copy that can.
    """

    _immutable = False
    is_size_tensor = False

    def __init__(self, shape_expr: Any = None, dtype: Any = None, format: Any = None, scale: Any = None) -> None:
        if isinstance(shape_expr, tuple):
            shape_expr = self._own.ShapeExprs.from_tuple(shape_expr)
        self.shape_expr, self.dtype = shape_expr, dtype
        self._seen: dict[str, Any] = {"format": format, "scale": scale}
        self._aliased_to: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        if self._immutable and name != "_immutable":
            raise ValueError("This TensorDesc cannot be changed. Change a copy: desc.like()")
        if name in ("shape", "format", "scale"):
            self._seen[name] = value
        else:
            object.__setattr__(self, name, value)

    def _of_build(self, name: str) -> Any:
        if not self.has_shape:
            raise ValueError("The TensorDesc has no shape information at this stage: ask has_shape first")
        return self._seen[name]

    @property
    def shape(self) -> Any:
        """Extents as numbers."""
        return self._of_build("shape")

    @property
    def format(self) -> Any:
        """Format."""
        return self._of_build("format")

    @property
    def scale(self) -> Any:
        """Scale of INT8."""
        return self._of_build("scale")

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape_expr)

    @property
    def has_shape(self) -> bool:
        """Whether the extents are known as numbers."""
        return self._seen.get("shape") is not None

    @property
    def has_shape_expr(self) -> bool:
        """Whether the extents are known as expressions."""
        return self.shape_expr is not None

    @property
    def is_dynamic(self) -> bool:
        """Whether an extent is not known."""
        return bool(self.shape.is_dynamic)

    @property
    def is_aliased(self) -> bool:
        """Whether the tensor shares the memory of another one."""
        return self._aliased_to is not None

    def get_aliased(self) -> Any:
        """Return the description of the tensor whose memory is shared, or None."""
        return self._aliased_to

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self.shape.numel())

    def like(self) -> Any:
        """Return a copy that can be changed."""
        made = self._own.TensorDesc(self._own.ShapeExprs.from_tuple(self.shape_expr), self.dtype)
        made._seen.update(self._seen)
        return made

    def aliased(self) -> Any:
        """Return the description of an output that shares the memory of this input."""
        made = self.like()
        made._aliased_to = self
        made._immutable = True
        return made


class SizeTensorDesc(TensorDesc):
    """The description of an output that states the extent of another."""

    is_size_tensor = True

    def __init__(self, opt: Any, upper_bound: Any) -> None:
        TensorDesc.__init__(self, self._own.ShapeExprs(0), self._api.DataType.INT32)
        self.opt, self.upper_bound = self._own.ShapeExpr(opt), self._own.ShapeExpr(upper_bound)
        self.index: int | None = None
        self._extent = self._own.SizeTensorShapeExpr(self)

    def expr(self) -> Any:
        """Return the extent that the tensor states."""
        return self._extent


class Tensor(Quick):
    """A tensor in memory. numpy and what reads `__array_interface__` share its memory: `numpy.asarray(tensor)`."""

    _immutable = False

    def __init__(self) -> None:
        self.data_ptr: int | None = None
        self.dtype: Any = None
        self.shape: Any = None
        self.format: Any = None
        self.scale: Any = None
        self.strides: tuple[int, ...] | None = None
        self._aliased_to: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        if self._immutable and name != "_immutable":
            raise ValueError("The properties of a Tensor cannot be changed; its memory can")
        object.__setattr__(self, name, value)

    @classmethod
    def _of(cls, desc: Any, address: int) -> Any:
        made = cls()
        made.data_ptr, made.dtype, made.shape = address, desc.type, cls._own.Shape(desc)
        made.format, made.scale = desc.format, desc.scale
        made.strides = _strides(desc)
        return made

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_data_dependent(self) -> bool:
        """Whether the data decides on an extent."""
        return bool(self.shape.is_dynamic)

    @property
    def is_aliased(self) -> bool:
        """Whether the tensor shares the memory of another one."""
        return self._aliased_to is not None

    def get_aliased(self) -> Any:
        """Return the tensor whose memory is shared, or None."""
        return self._aliased_to

    def numel(self) -> int:
        """Return the number of elements.

        Raises:
            ValueError: The data decides on an extent.
        """
        return int(self.shape.numel())

    def aliased(self, shape: Any = None) -> Any:
        """Return a tensor at the same address with another shape; the same one by default.

        Raises:
            ValueError: The shape has more elements.
        """
        made = copy.copy(self)
        object.__setattr__(made, "_immutable", False)
        if shape is not None:
            found = shape if isinstance(shape, Shape) else self._own.Shape(shape if _is_desc(shape) else tuple(shape))
            if not self.is_data_dependent and not found.is_dynamic and found.numel() > self.numel():
                raise ValueError(f"The shape {found} has more elements than the tensor ({self.shape})")
            made.shape = found
            made.strides = _row_major(list(found))
        made._aliased_to = self
        return made

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Address, type, extents and strides.

        Raises:
            ValueError: The data decides on an extent, or the format has vectors.
        """
        if self.is_data_dependent or self.strides is None:
            raise ValueError(
                f"The extents {self.shape} in {self.format} are not those of an array: use tensor.aliased(shape), or "
                "tensor.data_ptr"
            )
        dtype = core_dtype(self.dtype).numpy
        return {
            "version": 3,
            "shape": tuple(self.shape),
            "typestr": dtype.str,
            "data": (self.data_ptr, False),
            "strides": tuple(stride * dtype.itemsize for stride in self.strides),
        }


def _is_desc(shape: Any) -> bool:
    return hasattr(shape, "dims") or hasattr(shape, "desc")


def _row_major(dims: Sequence[int]) -> tuple[int, ...] | None:
    return None if -1 in dims else tuple(int(np.prod(dims[axis + 1 :], dtype=np.int64)) for axis in range(len(dims)))


def _strides(desc: Any) -> tuple[int, ...] | None:
    """The distance of elements along each axis; None where the format has vectors, or an extent is not known."""
    dims = list(desc.dims)
    if desc.format.name == CHANNELS_LAST and len(dims) > 2:
        moved = _row_major([*dims[:-3], *dims[-2:], dims[-3]])
        return None if moved is None else (*moved[:-3], moved[-1], *moved[-3:-1])
    return _row_major(dims) if desc.format.name == LINEAR else None


CLASSES = (
    *(ShapeExpr, SizeTensorShapeExpr, ShapeExprs, Shape),
    *(TensorDesc, SizeTensorDesc, Tensor),
)


def functions(own: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions on extents of a version's module.

    Args:
        own: the module.
    """

    def on_both(name: str, text: str) -> Callable[[Any, Any], Any]:
        def operation(first: Any, second: Any) -> Any:
            if not isinstance(first, ShapeExpr) and not isinstance(second, ShapeExpr):
                message = f"An operand must be a ShapeExpr (found {first!r} and {second!r})"
                raise ValueError(message)  # noqa: TRY004  as TensorRT
            return own.ShapeExpr(first)._operation(name, second)

        operation.__doc__ = text
        return operation

    def size_tensor(opt: Any, upper_bound: Any) -> Any:
        """Return the description of an output that states an extent, of at most an upper bound."""
        return own.SizeTensorDesc(opt, upper_bound)

    def from_shape_expr(shape_expr: Any, dtype: Any) -> Any:
        """Return the description of a tensor with these extents and this type."""
        return own.TensorDesc(own.ShapeExprs.from_tuple(shape_expr), dtype)

    return {
        "cdiv": on_both("CEIL_DIV", "Return a quotient, rounded up."),
        "max": on_both("MAX", "Return the larger extent."),
        "min": on_both("MIN", "Return the smaller extent."),
        "size_tensor": size_tensor,
        "from_shape_expr": from_shape_expr,
    }
