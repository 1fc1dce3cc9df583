"""The common base of all layers: a name, inputs, outputs, typed parameters and shape inference.

A layer kind is one attrs class in `dryfit.network.layers`: its fields are its parameters, and `infer_outputs` both
infers its shapes and verifies it (it raises `NetworkError` for invalid parameters or inputs).
The computation itself is in `dryfit.reference`, in the file of the layer's family, as listed in that package's
docstring.
"""

from __future__ import annotations

import abc
import functools
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform

import attrs

from dryfit.attrs_classes import AnyClass, generate_later
from dryfit.errors import NetworkError, UnfinishedLayerError
from dryfit.network.attribute_names import KnownAttributes, refusing_unknown
from dryfit.network.data_types import DataType
from dryfit.network.declared_types import Check, WrongTypeError, check_for
from dryfit.network.printing import parameter_texts
from dryfit.network.tensor import Tensor, TensorSpec

LAYER_KINDS: dict[str, type[Layer]] = {}
"""Every layer kind by name, filled by `layer_kind`."""

LayerT = TypeVar("LayerT", bound="Layer")
Inputs = Sequence[TensorSpec | None]
"""Specs of a layer's inputs, None where an optional input is absent."""
Specs = Mapping[str, TensorSpec]
"""Tensor name to spec."""

ALL_INPUTS = range(sys.maxsize)
"""The indices of all inputs, however many a layer has."""


class Graph:
    """What a layer knows of a network that is one of its parameters; `Network` inherits from it."""

    name: str
    layers: list[Layer]
    inputs: list[Tensor]
    outputs: list[Tensor]

    def refresh_shapes(self) -> None:
        """Infer the shapes again that a change invalidated."""
        raise NotImplementedError


class LayerOwner(Protocol):
    """The part of a network that the `add_*` methods of a layer kind need."""

    def add_layer(self, layer: LayerT, inputs: Sequence[Tensor | None], *, is_finished: bool = True) -> LayerT:
        """Add a new layer to the network and connect it; it need not be valid yet unless it is finished."""
        ...


def _touch(layer: Layer, attribute: attrs.Attribute[Any], value: Any) -> Any:
    """Note that a parameter changed, so that shapes downstream are inferred again, or that the name did."""
    if attribute.name == "name" and layer.network is not None:
        return layer.network.noted_layer_name(layer, value)
    if attribute.name not in _NOT_PARAMETERS and layer.network is not None:
        layer.network.touch(layer.index)
    return value


def _checked(value: Any, layer: Layer, attribute: attrs.Attribute[Any], convert: Callable[[Any], Any] | None) -> Any:
    """The value in the type that the parameter is declared with.

    Raises:
        NetworkError: it is of another type.
    """
    check, is_tuple = _checks(type(layer))[attribute.name]
    try:
        # A converter of a tuple would cut 1.5 to 1, so that it only says what None stands for.
        if convert is not None and (value is None or not is_tuple):
            value = convert(value)
        return check(value)
    except WrongTypeError as error:
        raise layer.problem(
            f"`{attribute.name}` has the wrong type",
            found=error.found,
            allowed=error.allowed,
            remedy=error.remedy or "Pass an allowed value",
        ) from None


@functools.cache
def _checks(cls: type[Layer]) -> Mapping[str, tuple[Check, bool]]:
    """Field name to the check of its declared type, and whether it is a tuple. Resolved once a class."""
    hints = typing.get_type_hints(cls)
    return {field.name: (check_for(hints[field.name]), _is_tuple(hints[field.name])) for field in _fields(cls)}


def _plain_default(field: attrs.Attribute[Any]) -> Any:
    """The default of a field where it needs no check: a text, a number, None or a tuple, say; else NOTHING."""
    return field.default if type(field.default) in (str, float, bool, types.NoneType, tuple) else attrs.NOTHING


def is_table(field: attrs.Attribute[Any]) -> bool:
    """Whether a parameter is a dictionary, by default an empty one."""
    return getattr(field.default, "factory", None) is dict


def _is_tuple(kind: Any) -> bool:
    return tuple in (typing.get_origin(kind), *map(typing.get_origin, typing.get_args(kind)))


def _with_checks(cls: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    """The fields of a layer class, each with a converter that checks the declared type."""
    del cls
    return [
        field
        if isinstance(field.converter, attrs.Converter) or field.name in _CONNECTIONS
        else field.evolve(converter=_converter(field))
        for field in fields
    ]


def _converter(field: attrs.Attribute[Any]) -> Any:
    own: Any = field.converter
    default = attrs.NOTHING if own is not None else _plain_default(field)
    is_plain_table = is_table(field) and own is None

    def convert(value: Any, layer: Any, attribute: Any) -> Any:
        # Most parameters of most layers have their defaults.
        if value is default or (is_plain_table and type(value) is dict and not value):
            return value
        return _checked(value, layer, attribute, own)

    return attrs.Converter(convert, takes_self=True, takes_field=True)


_CONNECTIONS = frozenset({"inputs", "outputs", "network", "index"})
"""Fields that the network writes."""


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(attrs.field,))
def define_layer(cls: AnyClass) -> AnyClass:
    """Make an attrs class of every layer: identity equality, keyword parameters, type checks, change tracking.

    Layer kinds apply it through `layer_kind`; a base class of several kinds applies it directly. The methods of a class
    are generated at its first use.
    """
    return generate_later(cls, ("__init__", "__setattr__", "__attrs_attrs__"), _generate)


def _generate(cls: Any) -> None:
    hooks: list[Any] = [attrs.setters.convert, attrs.setters.validate, _touch]
    attrs.define(
        eq=False,
        repr=False,
        slots=False,
        kw_only=True,
        auto_detect=False,
        on_setattr=hooks,
        field_transformer=_with_checks,
    )(cls)
    cls.__setattr__ = refusing_unknown(cls.__setattr__, _CONNECTIONS)


class LayerMeta(abc.ABCMeta):
    """The metaclass of layers: abstract methods as usual, with the `isinstance` of ordinary classes.

    No class is registered as a virtual layer kind, and querying the registry of each abstract class would take as long
    as the rest of a pass that looks for layers of one kind.
    """

    __instancecheck__ = type.__instancecheck__


def _computes(layer: Layer, attribute: attrs.Attribute[Any], precision: DataType | None) -> None:
    """Refuse a precision in which nothing is computed."""
    if precision is not None and not _is_computed_in(precision):
        raise layer.problem(
            f"`{attribute.name}` must be a type that layers compute in",
            found=f"DataType.{precision.name}",
            allowed=", ".join(f"DataType.{dtype.name}" for dtype in DataType if _is_computed_in(dtype)),
            remedy="Choose one of these types",
        )


def _is_computed_in(dtype: DataType) -> bool:
    return dtype.is_floating_point or dtype.is_quantized or dtype is DataType.INT32


@define_layer
class Layer(KnownAttributes, metaclass=LayerMeta):
    """One layer of a network.

    Properties that hold for every layer of a kind are traits of its class: devices, passes and the builder test the
    trait, never a list of names. A kind declares only the traits that differ from the defaults, which describe a layer
    that computes real numbers from all its inputs.

    Attributes:
        is_weighted: the layer has a kernel (the parameter `kernel`, or input 1) and may have a bias (`bias`, or input
            2). INT8 quantizes the kernel per output channel.
        sums_products: each output element is a sum of many products of two operands: weights, or another matrix.
            Devices have multipliers for this, so INT8 always pays off, and quantization noise averages out in the sum.
            Not set for einsum, which is a notation for many computations that no device runs on multipliers.
        only_moves_values: the output contains exactly the values of input 0, in another order or shape.
        is_conversion: the output contains the elements of input 0, in the same places, in another type.
        is_quantization: the layer converts between floating point and codes. One such layer makes a network explicitly
            quantized.
        has_fixed_types: the types are part of the layer's definition, so no precision is chosen for it.
        needs_real_numbers: the layer is not computed in INT8 unless a device promotes the layer itself. Source: our
            choice, because the results span many orders of magnitude, or depend on differences that INT8 cannot
            represent.
        computing_inputs: inputs that are converted to the computation type; the others keep their own type.
        dimension_inputs: inputs with one dimension per element. Source: TensorRT Developer Guide, "Working with Dynamic
            Shapes", "Shape Tensors and Execution Tensors".
        parameter_inputs: input index to the equivalent parameter, for inputs that are constants.
        flowing_inputs: inputs that are tensors of the network; the others are weights, dimensions or a fill value.
        inputs_of_one_type: inputs that must have the same type in a strongly typed network; empty for a kind that has
            one operand, or that specifies its types itself.
        late_inputs: inputs that are read one iteration after they are computed, as the second input of a recurrence is.
            They do not order the layers.
        name: unique in the network. `Network.add_layer` replaces an empty name with TensorRT's default name, and
            appends a number to a name that another layer already has.
        metadata: free text. The ONNX importer stores the names of the source nodes here, as TensorRT's parser does.
        onnx_nodes: names of the ONNX nodes from which the layer was imported; of a TFLite model the locations of
            operators, `index:NAME:first output`.
        precision: the computation type set by the user, or None.
        output_types: output index to the type set by the user.
        quantize_method: name of the quantize method that computes the layer, with the surrounding quantization, in
            integers. "none": no method, whatever the network's setting. "": use the network's setting.
        inputs: input tensors; None for an absent optional input. Changed by `set_input` only.
        outputs: the tensors that this layer produces.
        network: the network that owns the layer; None before the layer is added.
        index: position in the network.
    """

    _not_for_users: ClassVar[frozenset[str]] = _CONNECTIONS

    kind: ClassVar[str]
    layer_type: ClassVar[str]
    num_optional_inputs: ClassVar[int] = 0

    is_weighted: ClassVar[bool] = False
    sums_products: ClassVar[bool] = False
    only_moves_values: ClassVar[bool] = False
    is_conversion: ClassVar[bool] = False
    is_quantization: ClassVar[bool] = False
    has_fixed_types: ClassVar[bool] = False
    needs_real_numbers: ClassVar[bool] = False
    computing_inputs: ClassVar[Collection[int]] = ALL_INPUTS
    dimension_inputs: ClassVar[Collection[int]] = ()
    parameter_inputs: ClassVar[Mapping[int, str]] = MappingProxyType({})
    flowing_inputs: ClassVar[Collection[int]] = ALL_INPUTS
    inputs_of_one_type: ClassVar[Collection[int]] = ()
    late_inputs: ClassVar[Collection[int]] = ()

    name: str = ""
    metadata: str = ""
    onnx_nodes: tuple[str, ...] = ()
    precision: DataType | None = attrs.field(default=None, validator=_computes)
    output_types: dict[int, DataType] = attrs.field(factory=dict)
    quantize_method: str = ""
    inputs: list[Tensor | None] = attrs.field(factory=list, repr=False)
    outputs: list[Tensor] = attrs.field(factory=list, repr=False)
    network: Any = attrs.field(default=None, repr=False)
    index: int = -1

    @abc.abstractmethod
    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the shapes and types of the outputs.

        Dynamic dimensions (-1) propagate; an output dimension that cannot be inferred is -1.

        Raises:
            NetworkError: The parameters do not match the inputs. Use `self.problem(...)` to create this error.
        """

    def largest_outputs(self, inputs: Inputs, outputs: Sequence[TensorSpec]) -> Sequence[TensorSpec]:
        """Return upper bounds of outputs whose shapes depend on data; kinds with such outputs override this.

        Args:
            inputs: specs of the inputs, with the largest shapes.
            outputs: what `infer_outputs` returns for them; an extent of -1 has no bound.
        """
        del inputs
        return outputs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([repr(self.name), *parameter_texts(self)])})"

    def settle_weights(self, inputs: Inputs) -> None:
        """Reshape flat weights to the shape that the inputs imply. Called before `infer_outputs`."""

    def multiply_accumulates(self, specs: Specs) -> int:
        """Return the multiply-accumulates per run; 0 for kinds that multiply neither weights nor matrices.

        Zero padding counts like other elements; adding a bias does not count. Dynamic extents count as 1.

        Args:
            specs: specs of the network's tensors.
        """
        del specs
        return 0

    def problem(
        self,
        message: str,
        *,
        found: object = None,
        allowed: object = None,
        remedy: str | None = None,
        is_mendable: bool = False,
    ) -> NetworkError:
        """Return a `NetworkError` that names this layer.

        Args:
            message: what is wrong.
            found: the invalid value.
            allowed: the allowed values.
            remedy: how to fix it.
            is_mendable: whether a parameter that is set after the layer is added (groups, padding, an axis) can fix the
                problem. A builder method that leaves such parameters to be set later may still add the layer.
        """
        error = UnfinishedLayerError if is_mendable else NetworkError
        return error(message, where=self.where, found=found, allowed=allowed, remedy=remedy)

    @property
    def where(self) -> str:
        """A description of the layer for messages: its name, its kind and its source ONNX nodes."""
        # A parameter may be refused before the layer has any.
        name, nodes = getattr(self, "name", ""), getattr(self, "onnx_nodes", ())
        where = f"layer {name!r} ({self.kind})" if name else f"a new {self.kind} layer"
        return f"{where} from ONNX node {', '.join(map(repr, nodes))}" if nodes else where

    def required(self, inputs: Inputs, index: int) -> TensorSpec:
        """Return the spec of an input that must be connected.

        Raises:
            NetworkError: The input is not connected.
        """
        spec = inputs[index] if index < len(inputs) else None
        if spec is None:
            raise self.problem(f"Input {index} is not connected", remedy="Connect it with `set_input`")
        return spec

    @property
    def type(self) -> str:
        """TensorRT's `LayerType` name, such as `CONVOLUTION`. Kinds with an operation named type override this."""
        return self.layer_type

    @property
    def output_count(self) -> int:
        """Number of outputs, known before they are inferred."""
        return 1

    @property
    def bodies(self) -> Sequence[Graph]:
        """Networks that the layer runs, such as the branches of a conditional; empty for most kinds."""
        return ()

    @property
    def is_host_only(self) -> bool:
        """Whether the layer uses an operation or a parameter that TensorRT lacks, so that no device supports it."""
        return bool(self.host_only_reason)

    @property
    def host_only_reason(self) -> str:
        """Why no device supports the layer, for kinds that can be more specific; otherwise empty."""
        return ""

    @property
    def num_inputs(self) -> int:
        """Number of inputs, including absent optional inputs."""
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    def connected_input(self, index: int) -> Tensor:
        """Return the tensor at an input that must be connected.

        Raises:
            NetworkError: The input is not connected.
        """
        tensor = self.get_input(index)
        if tensor is None:
            raise self.problem(f"Input {index} is not connected", remedy="Connect it with `set_input`")
        return tensor

    @property
    def connected_inputs(self) -> list[Tensor]:
        """Input tensors in order, without absent optional inputs."""
        return [tensor for tensor in self.inputs if tensor is not None]

    @property
    def ordering_inputs(self) -> Sequence[Tensor | None]:
        """Inputs that must be computed before the layer; None in the places of `late_inputs`."""
        if not self.late_inputs:
            return self.inputs
        return [None if index in self.late_inputs else tensor for index, tensor in enumerate(self.inputs)]

    def get_input(self, index: int) -> Tensor | None:
        """Return the tensor at an input, or None."""
        return self.inputs[index] if 0 <= index < len(self.inputs) else None

    def get_output(self, index: int) -> Tensor:
        """Return the tensor at an output."""
        return self.outputs[index]

    def set_input(self, index: int, tensor: Tensor | None) -> None:
        """Connect an input, and update the consumers of the old and the new tensor."""
        while len(self.inputs) <= index:
            self.inputs.append(None)
        old = self.inputs[index]
        if old is not None:
            old.consumers.remove((self, index))
        self.inputs[index] = tensor
        if tensor is not None:
            tensor.consumers.append((self, index))
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
        if self.network is not None:
            self.network.touch(self.index)

    @property
    def precision_is_set(self) -> bool:
        """Whether the user set a computation type."""
        return self.precision is not None

    def reset_precision(self) -> None:
        """Clear the computation type that the user set."""
        self.precision = None

    def set_output_type(self, index: int, dtype: DataType) -> None:
        """Set the type of one output.

        Raises:
            NetworkError: The output does not exist, or the value is not a data type.
        """
        if not 0 <= index < self.output_count:
            raise self.problem(
                "The layer has no such output",
                found=index,
                allowed=", ".join(map(str, range(self.output_count))),
                remedy="Choose one of these indices",
            )
        self.output_types = {**self.output_types, index: dtype}

    def get_output_type(self, index: int) -> DataType:
        """Return the type set by the user, or the inferred type if none is set."""
        return self.output_types.get(index) or self.outputs[index].dtype

    def output_type_is_set(self, index: int) -> bool:
        """Return whether the user set the type of this output."""
        return index in self.output_types

    def reset_output_type(self, index: int) -> None:
        """Clear the type that the user set for an output."""
        self.output_types = {place: dtype for place, dtype in self.output_types.items() if place != index}

    @classmethod
    def parameters(cls) -> tuple[attrs.Attribute[Any], ...]:
        """Return the fields specific to this kind, without those that every layer has; required fields first."""
        return _own_fields(cls)


def with_bodies(layers: Iterable[Layer]) -> Iterator[Layer]:
    """Return layers, each followed by the layers of its bodies."""
    for layer in layers:
        yield layer
        for body in layer.bodies:
            yield from with_bodies(body.layers)


@functools.cache
def _own_fields(cls: type[Layer]) -> tuple[attrs.Attribute[Any], ...]:
    own = [field for field in _fields(cls) if field.name not in _LAYER_FIELDS]
    return tuple(sorted(own, key=lambda field: field.default is not attrs.NOTHING))


def _fields(cls: Any) -> tuple[attrs.Attribute[Any], ...]:
    return attrs.fields(cls)  # type: ignore[no-any-return]


_LAYER_FIELDS = frozenset(field.name for field in _fields(Layer))
_NOT_PARAMETERS = _LAYER_FIELDS - {"output_types"}
"""Fields that shapes and types do not follow from."""


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(attrs.field,))
def layer_kind(kind: str, layer_type: str | None = None) -> Callable[[type[LayerT]], type[LayerT]]:
    """Return a decorator that makes a class an attrs class and a layer kind, registered in `LAYER_KINDS`.

    Args:
        kind: unique name of the kind, such as `convolution`.
        layer_type: TensorRT's `LayerType`. Default: the kind in upper case.
    """

    def register(cls: type[LayerT]) -> type[LayerT]:
        cls = define_layer(cls)
        cls.kind = kind
        cls.layer_type = layer_type or kind.upper()
        LAYER_KINDS[kind] = cls
        return cls

    return register
