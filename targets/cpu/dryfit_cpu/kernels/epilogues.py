"""What a matrix product does with its sums: scales, activation, residual, activation, in this order.

And the one function of an operand by which other kernels end: an activation, or a unary operation with a vector form.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import cast

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import BuildError, ExecutionError
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, kernel
from dryfit_cpu import codes
from dryfit_cpu.descriptors import Finish, Function
from dryfit_cpu.kernels.branches import branches_of
from dryfit_cpu.kernels.constants import Affine, affine_of
from dryfit_cpu.kernels.copying import NO_FUNCTION
from dryfit_cpu.kernels.written_functions import written_function

_CODES = {
    ActivationType.RELU: codes.RELU,
    ActivationType.CLIP: codes.CLIP,
    ActivationType.LEAKY_RELU: codes.LEAKY_RELU,
    ActivationType.SIGMOID: codes.SIGMOID,
    ActivationType.TANH: codes.TANH,
    ActivationType.HARD_SIGMOID: codes.HARD_SIGMOID,
    ActivationType.ELU: codes.ELU,
    ActivationType.SELU: codes.SELU,
    ActivationType.SOFTPLUS: codes.SOFTPLUS,
    ActivationType.SOFTSIGN: codes.SOFTSIGN,
    ActivationType.SCALED_TANH: codes.SCALED_TANH,
    ActivationType.THRESHOLDED_RELU: codes.THRESHOLDED_RELU,
    ActivationType.GELU_ERF: codes.GELU_ERF,
    ActivationType.GELU_TANH: codes.GELU_TANH,
}


@frozen(eq=False)
class Epilogue:
    """A group's layers after the main one, as a matrix product runs them.

    Attributes:
        scales: folded into weights and bias when they are packed; also sums and products with constants.
        inner: activation before the residual is added; none where there is no residual.
        residual: the tensor that is added.
        outer: activation at the end.
    """

    scales: Sequence[Affine] = ()
    inner: Function = NO_FUNCTION
    residual: Tensor | None = None
    outer: Function = NO_FUNCTION

    @property
    def clamps(self) -> tuple[float, float] | None:
        """The limits of the results where clamping is all that the end is; None where it is more."""
        code, alpha, beta = self.outer
        if self.inner != NO_FUNCTION or code not in (codes.NONE, codes.RELU, codes.CLIP):
            return None
        return {
            codes.NONE: (-np.inf, np.inf),
            codes.RELU: (0.0, np.inf),
            codes.CLIP: (alpha, beta),
        }[code]

    def finish(self, *, bypasses: bool) -> Finish:
        """What native functions are told about it; sums bypass the output where more than limits follows."""
        low, high = (-np.inf, np.inf) if bypasses or self.clamps is None else self.clamps
        _, slope, shift = self.outer if self._is_gate and not bypasses else NO_FUNCTION
        return Finish(int(bypasses), low, high, self.inner, self.outer, slope, shift)

    @property
    def _is_gate(self) -> bool:
        """Whether hard swish is all that the end is."""
        return self.inner == NO_FUNCTION and self.outer.kind == codes.HARD_SWISH

    @property
    def ends_in_registers(self) -> bool:
        """Whether register blocks can end so: by limits or hard swish."""
        return self.clamps is not None or self._is_gate


def activation_code(layer: Layer) -> Function | None:
    """The code of an activation layer; None when it is another layer, or one that native functions lack."""
    if not isinstance(layer, Activation) or layer.activation_type not in _CODES:
        return None
    return Function(_CODES[layer.activation_type], layer.alpha, layer.beta)


def epilogue_of(group: LayerGroup) -> Epilogue | None:
    """The epilogue of a group; None where it is not of this form."""
    epilogue: Epilogue | None = Epilogue()
    layers, value = list(group.epilogue), group.main.outputs[0]
    branches = branches_of(group)
    if branches is not None:
        layers, value = layers[branches.count :], branches.value
    while layers and epilogue is not None:
        written = written_function(layers, value)
        if written is not None:
            function, count = written
            epilogue = attrs.evolve(epilogue, outer=function) if _can_end_with(epilogue, function) else None
        else:
            epilogue, count = _extended(epilogue, layers[0], value, group), 1
        value = layers[count - 1].outputs[0]
        del layers[:count]
    return epilogue


def _can_end_with(epilogue: Epilogue, function: Function) -> bool:
    """Whether sums end with a function that several layers write: hard swish does not leave the registers.

    SiLU and GELU take as long as a pass over memory does, or longer: with EfficientNet-B0, 15 to 20 % of the network's
    time was lost where they came from the stack of each block (AMD EPYC, Zen 3). So they are a pass of their own.
    """
    ended = attrs.evolve(epilogue, outer=function)
    return epilogue.outer == NO_FUNCTION and function.kind == codes.HARD_SWISH and ended.ends_in_registers


def required_epilogue(binding: Binding) -> Epilogue:
    """The epilogue of a group that a kernel accepted, for the shapes that it is bound to.

    Raises:
        BuildError: it is of another form.
        ExecutionError: a residual with a dynamic shape turns out to be larger than what it is added to.
    """
    group = binding.group
    epilogue = epilogue_of(group)
    if epilogue is None:
        raise BuildError(
            "The kernel cannot run this epilogue",
            where=f"layer {group.name!r}",
            remedy="Rebuild the engine; if the error persists, report a bug in the kernel",
        )
    require_one_shape(binding)
    return epilogue


def require_one_shape(binding: Binding) -> None:
    """Refuse shapes for which the epilogue would make the output larger than the main layer's.

    Raises:
        ExecutionError: a residual with a dynamic shape turns out to be larger than what it is added to.
    """
    group = binding.group
    main, output = (binding.specs[tensor.name].shape for tensor in (group.main.outputs[0], group.outputs[0]))
    if main != output:
        raise ExecutionError(
            "A tensor that is added to a layer's output must broadcast to the output's shape",
            where=f"layer {group.name!r}",
            found=output,
            allowed=main,
            remedy="Use tensors of the same shape",
        )


def fuses(group: LayerGroup, layer: Layer) -> bool:
    """Whether a matrix product that runs this group can take the layer too."""
    return epilogue_of(LayerGroup((*group.layers, layer))) is not None


weighted_kernel = functools.partial(
    kernel,
    data_types=codes.FLOATS,
    fuses_forks=True,
    packed_parameters=("kernel", "bias", "scale", "shift", "power"),
    layout=HostLayout.CHANNELS_LAST,
)
"""The decorator of kernels of weighted sums of real numbers, into whose packed weights scales are folded."""


def folded(group: LayerGroup, kernel: Array, bias: Array | None) -> tuple[Array, Array]:
    """FP32 weights `[K, ...]` and bias `[K]` of a group's main layer with its scales multiplied in."""
    weights = np.asarray(kernel, dtype=np.float32)
    K = weights.shape[0]
    offsets = np.zeros(K, np.float32) if bias is None else np.asarray(bias, dtype=np.float32).reshape(K)
    epilogue = epilogue_of(group)
    for scale in epilogue.scales if epilogue is not None else ():
        # Scales are multiplied into the weights, as batch normalizations are folded: nothing of them is left at run
        # time.
        weights = weights * np.broadcast_to(scale.factor, K).reshape(K, *[1] * (weights.ndim - 1))
        offsets = offsets * scale.factor + scale.shift
    return weights, offsets


def _channel_axis(group: LayerGroup) -> int:
    """The axis of the output that the packed panels are along."""
    return len(group.main.outputs[0].shape) - 1 if group.main.kind == "matrix_multiply" else 1


def _folds(group: LayerGroup) -> bool:
    """Whether the weights are there when they are packed, to fold scales into: those of a product may be computed."""
    weights = cast("Tensor", group.main.inputs[1]) if group.main.kind == "matrix_multiply" else None
    return weights is None or weights.spec.value is not None or weights.producer in group.prologue


def _can_be_added(other: Tensor, value: Tensor, channel_axis: int) -> bool:
    """Whether it has the value's type and shape; axes other than the channels' may be repeated."""
    pairs = list(zip(other.shape, value.shape, strict=False))
    return (
        other.dtype is value.dtype
        and len(other.shape) == len(value.shape)
        and all(mine in (theirs, 1) for mine, theirs in pairs)
        and pairs[channel_axis][0] == pairs[channel_axis][1]
    )


def _extended(epilogue: Epilogue, layer: Layer, value: Tensor, group: LayerGroup) -> Epilogue | None:
    """The epilogue of a group with one more layer, which takes `value`; None where it does not fit."""
    is_open, channel_axis = epilogue.outer == NO_FUNCTION, _channel_axis(group)
    if is_open and epilogue.residual is None and _folds(group):
        scale = affine_of(layer, value)
        if scale is not None and scale.axis in (None, channel_axis):
            return attrs.evolve(epilogue, scales=(*epilogue.scales, scale))
    code = activation_code(layer)
    if code is not None:
        return attrs.evolve(epilogue, outer=code) if is_open else None
    if isinstance(layer, Elementwise) and layer.op is ElementWiseOperation.SUM and epilogue.residual is None:
        others = [tensor for tensor in layer.inputs if tensor is not None and tensor is not value]
        if len(others) != 1 or not _can_be_added(others[0], value, channel_axis):
            return None
        return attrs.evolve(epilogue, inner=epilogue.outer, residual=others[0], outer=NO_FUNCTION)
    return None


_UNARY = {
    UnaryOperation.EXP: codes.EXP,
    UnaryOperation.LOG: codes.LOG,
    UnaryOperation.SQRT: codes.SQRT,
    UnaryOperation.RECIP: codes.RECIP,
    UnaryOperation.ABS: codes.ABS,
    UnaryOperation.NEG: codes.NEG,
    UnaryOperation.FLOOR: codes.FLOOR,
    UnaryOperation.CEIL: codes.CEIL,
    UnaryOperation.ROUND: codes.ROUND,
    UnaryOperation.ERF: codes.ERF,
    UnaryOperation.SIGN: codes.SIGN,
}


def function_code(layer: Layer) -> Function | None:
    """The code of a function; None for another layer, and for a function that has no vector form."""
    if isinstance(layer, Unary):
        return Function(_UNARY[layer.op], 0.0, 0.0) if layer.op in _UNARY else None
    return activation_code(layer)


def can_end_with(group: LayerGroup, layer: Layer) -> bool:
    """Whether a kernel that applies one function to its results can take the layer into the group."""
    return len(group.layers) == 1 and function_code(layer) is not None


def has_known_end(group: LayerGroup) -> bool:
    """Whether a function, or nothing, follows the group's main layer."""
    return len(group.epilogue) <= 1 and all(function_code(layer) is not None for layer in group.epilogue)


def final_function(group: LayerGroup) -> Function:
    """The function at the end of a group."""
    code = NO_FUNCTION
    for layer in group.epilogue:
        code = function_code(layer) or NO_FUNCTION
    return code
