"""Element by element: operations, activations, unary functions, scales and casts, on arrays of any strides.

A group is one pass over memory: a function of one operand, an operation on the result, a function of that; or fewer of
these, but not two functions alone. A function may be written as several layers, such as `x * sigmoid(x)`.
"""

from __future__ import annotations

import itertools
import math
from typing import cast

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import ParametricRelu, Scale, ScaleMode
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Select, Unary, UnaryOperation
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.compiler.native import NativeStep
from dryfit_cpu.descriptors import Function
from dryfit_cpu.kernels.constants import Affine, affine_of, coefficient, has_power
from dryfit_cpu.kernels.copying import NO_FUNCTION, bit_copy_work, parts_along, pointwise_work
from dryfit_cpu.kernels.epilogues import function_code
from dryfit_cpu.kernels.operands import bound_array
from dryfit_cpu.kernels.written_functions import written_function

_OPERATIONS = {
    ElementWiseOperation.SUM: codes.SUM,
    ElementWiseOperation.PROD: codes.PROD,
    ElementWiseOperation.MAX: codes.MAX,
    ElementWiseOperation.MIN: codes.MIN,
    ElementWiseOperation.SUB: codes.SUB,
    ElementWiseOperation.DIV: codes.DIV,
    ElementWiseOperation.POW: codes.POW,
}
_COMMUTATIVE = (codes.SUM, codes.PROD, codes.MAX, codes.MIN)
_COMPARISONS = {
    ElementWiseOperation.EQUAL: codes.EQUAL,
    ElementWiseOperation.GREATER: codes.GREATER,
    ElementWiseOperation.LESS: codes.LESS,
    ElementWiseOperation.GREATER_EQUAL: codes.GREATER_EQUAL,
    ElementWiseOperation.LESS_EQUAL: codes.LESS_EQUAL,
}
_LOGIC = {
    ElementWiseOperation.AND: codes.MIN,
    ElementWiseOperation.OR: codes.MAX,
    ElementWiseOperation.XOR: codes.UNEQUAL,
}
"""What these are of values that are 0 or 1."""
_CODES = {**_OPERATIONS, **_COMPARISONS, **_LOGIC}
_TRUTHS = {
    UnaryOperation.ISNAN: Function(codes.IS_NAN, 0.0, 0.0),
    UnaryOperation.ISINF: Function(codes.IS_INFINITE, 0.0, 0.0),
    UnaryOperation.NOT: Function(codes.IS_ZERO, 0.0, 0.0),
}
"""Functions that give BOOL, or take it."""
_IS_TRUE = Function(codes.IS_NOT_ZERO, 0.0, 0.0)


@frozen(eq=False)
class _PassForm:
    """A group as one pass: `outer(operation(inner(x), ...))`.

    Attributes:
        inner: function of the first operand.
        source: what that is a function of; None where there is none.
        operation: the layer that combines operands; None where there are functions only.
        chain: where the operation and layers after it scale and shift by known numbers, what they do in one.
        outer: function of the result.
    """

    inner: Function = NO_FUNCTION
    source: Tensor | None = None
    operation: Layer | None = None
    chain: Affine | None = None
    outer: Function = NO_FUNCTION

    @property
    def code(self) -> int:
        """What the operation is."""
        if self.chain is not None or isinstance(self.operation, Scale):
            return codes.MULTIPLY_ADD
        if isinstance(self.operation, Elementwise):
            return codes.PROD if _is_square(self.operation) else _CODES[self.operation.op]
        if isinstance(self.operation, Select):
            return codes.SELECT
        return codes.SLOPE if isinstance(self.operation, ParametricRelu) else codes.FIRST

    def extended(self, layer: Layer, value: Tensor) -> _PassForm | None:
        """The form with one more layer that scales or shifts its input `value`; None where they do not fold."""
        before = self.chain
        if before is None and self.operation is not None:
            before = affine_of(self.operation, _variable(self.operation))
        following = affine_of(layer, value)
        chain = None if before is None or following is None else before.then(following)
        return None if chain is None else attrs.evolve(self, chain=chain)


def _variable(operation: Layer) -> Tensor:
    """The first operand that is not known before the run; the first where all are."""
    tensors = [tensor for tensor in operation.inputs if tensor is not None]
    return next((tensor for tensor in tensors if tensor.spec.value is None), tensors[0])


def _is_square(layer: Layer) -> bool:
    """Whether a layer raises to the power of 2, which is a product: both are the number nearest to the square."""
    if not isinstance(layer, Elementwise) or layer.op is not ElementWiseOperation.POW:
        return False
    exponent = layer.inputs[1].spec.value if layer.inputs[1] is not None else None
    return exponent is not None and exponent.size == 1 and bool(exponent.reshape(-1)[0] == 2)


def _is_operation(layer: Layer) -> bool:
    if isinstance(layer, Elementwise):
        return layer.op in _CODES
    if isinstance(layer, Scale):
        is_even = layer.mode is not ScaleMode.ELEMENTWISE or min(cast("Tensor", layer.inputs[0]).shape) >= 0
        return not has_power(layer) and is_even
    return isinstance(layer, ParametricRelu)


def _form_of(group: LayerGroup) -> _PassForm | None:
    """The form of a group; None where it has another."""
    form, layers = _PassForm(), list(group.layers)
    value: Tensor | None = None
    while layers:
        layer, source = layers[0], _variable(layers[0]) if value is None else value
        code, count = written_function(layers, source) or (_function_of(layer), 1)
        if form.outer != NO_FUNCTION:
            return None
        if value is None:
            form = _PassForm(operation=layer) if code is None else _PassForm(inner=code, source=source)
        elif code is not None and (form.operation is not None or value is not group.main.outputs[0]):
            form = attrs.evolve(form, outer=code)
        elif form.operation is None and (_is_operation(layer) or layer.kind == "select") and _takes_first(layer, value):
            form = attrs.evolve(form, operation=layer)
        else:
            extended = form.extended(layer, value)
            if extended is None:
                return None
            form = extended
        value = layers[count - 1].outputs[0]
        del layers[:count]
    return form


def _function_of(layer: Layer) -> Function | None:
    """What a layer computes of one operand; None where it is no such layer."""
    return _TRUTHS.get(layer.op) if isinstance(layer, Unary) and layer.op in _TRUTHS else function_code(layer)


def _takes_first(layer: Layer, value: Tensor) -> bool:
    """Whether a layer takes the value as its first operand, or could, and as no other."""
    places = [index for index, tensor in enumerate(layer.inputs) if tensor is value]
    is_commutative = isinstance(layer, Elementwise) and _CODES[layer.op] in _COMMUTATIVE
    return places == [0] or (places == [1] and is_commutative)


def _coefficients(form: _PassForm, binding: Binding, shape: tuple[int, ...]) -> list[Array]:
    """Factor and shift in shapes that broadcast to the output."""
    if form.chain is None:
        along = cast("Scale", form.operation).coefficient_shape(shape)
    else:
        along = tuple(extent if axis == form.chain.axis else 1 for axis, extent in enumerate(shape))
    coefficients = []
    for name in ("scale", "shift"):
        is_one = name in binding.weights and binding.weights[name].size == 1
        given = binding.weight(name, (1 if is_one else math.prod(along),))
        coefficients.append(given.reshape((1,) * len(shape) if is_one else along))
    return coefficients


def _pack(group: LayerGroup) -> dict[str, Array]:
    form = _form_of(group)
    if form is not None and form.chain is not None:
        return {"scale": form.chain.factor, "shift": form.chain.shift}
    if form is None or not isinstance(form.operation, Scale):
        return {}
    scale, factor = form.operation, coefficient(form.operation.scale, 1.0)
    if len(group.layers) == 1:
        # Alone, a layer's factor has the type of its input, as the weights of other layers have.
        factor = factor.astype(cast("Tensor", scale.inputs[0]).dtype.numpy).astype(np.float32)
    return {"scale": factor, "shift": coefficient(scale.shift, 0.0)}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if any(not _serves_types(one, specs) for one in group.layers):
        return False
    if layer.kind in ("cast", "identity"):
        return len(group.layers) == 1
    return (_is_operation(layer) or _function_of(layer) is not None) and _form_of(group) is not None


def _serves_types(layer: Layer, specs: Specs) -> bool:
    """Whether a layer reads and writes real numbers, and BOOL where that is a question or its answer."""
    inputs, outputs = (
        {specs[tensor.name].dtype for tensor in tensors if tensor is not None}
        for tensors in (layer.inputs, layer.outputs)
    )
    truth = {DataType.BOOL}
    if isinstance(layer, Elementwise) and layer.op in _COMPARISONS:
        return inputs <= codes.FLOATS
    if isinstance(layer, Elementwise) and layer.op in _LOGIC:
        return inputs == truth
    if isinstance(layer, Unary) and layer.op in _TRUTHS:
        return inputs == truth if layer.op is UnaryOperation.NOT else inputs <= codes.FLOATS
    if layer.kind == "select":
        return outputs <= codes.FLOATS
    if layer.kind in ("cast", "identity"):
        return inputs | outputs <= codes.FLOATS | truth
    return inputs | outputs <= codes.FLOATS


def _fuses(group: LayerGroup, layer: Layer) -> bool:
    return group.main.kind not in ("cast", "identity") and _form_of(LayerGroup((*group.layers, layer))) is not None


@kernel(
    "cpu.pointwise",
    kinds=["elementwise", "activation", "unary", "scale", "parametric_relu", "cast", "identity"],
    data_types=codes.FLOATS | {DataType.BOOL},
    accepts=_accepts,
    fuses=_fuses,
    fuses_forks=True,
    pack=_pack,
    packed_parameters=("scale", "shift"),
)
def map_elements(binding: Binding) -> NativeStep:
    """A step that does all layers of the group in one pass."""
    form = cast("_PassForm", _form_of(binding.group))
    first, output = form.source or binding.group.main.inputs[0], bound_array(binding, binding.group.outputs[0].name)
    inner = {tensor.name for layer in binding.group.layers for tensor in layer.outputs}
    tensors = list(form.operation.inputs) if form.operation is not None else []
    if form.chain is not None and form.operation is not None:
        tensors = [_variable(form.operation)]
    if form.inner != NO_FUNCTION:
        others = [tensor for tensor in tensors if tensor is not None and tensor.name not in inner]
        tensors = [first, *others]
    if form.operation is not None and _is_square(form.operation) and form.inner == NO_FUNCTION:
        tensors = [tensors[0], tensors[0]]
    operands = [bound_array(binding, tensor.name) for tensor in tensors if tensor is not None]
    if form.code == codes.MULTIPLY_ADD:
        operands += _coefficients(form, binding, output.shape)
    outer = form.outer
    if binding.group.main.kind == "cast" and output.dtype == np.bool_:
        outer = _IS_TRUE
    work = pointwise_work(form.code, operands, output, binding.num_threads, outer, form.inner)
    return NativeStep(binding.group.name, work, [binding, operands])


@kernel(
    "cpu.concatenation",
    kinds="concatenation",
    data_types=codes.FLOATS | {DataType.INT8, DataType.INT32, DataType.INT64, DataType.BOOL},
    accepts=lambda group, specs: len(group.layers) == 1,
    joins_channels=True,
)
def concatenate(binding: Binding) -> NativeStep:
    """A step that copies each input to its place in the output, unless it lies there."""
    layer = binding.group.main
    output = bound_array(binding, layer.outputs[0].name)
    sources = [bound_array(binding, cast("Tensor", tensor).name) for tensor in layer.inputs]
    parts = parts_along(layer.axis, sources, output)  # type: ignore[attr-defined]
    work = [
        bit_copy_work(source, part, binding.num_threads)
        for source, part in zip(sources, parts, strict=True)
        if (source.ctypes.data, source.strides) != (part.ctypes.data, part.strides)
    ]
    return NativeStep(binding.group.name, list(itertools.chain(*work)), [binding])
