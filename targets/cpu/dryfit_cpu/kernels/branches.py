"""Branches from one input that are summed, as one convolution: the form in which reparameterized networks are trained.

A 3 x 3 convolution, a 1 x 1 convolution and a batch normalization of the same images are one 3 x 3 convolution, whose
weights are the sum of theirs. MobileOne has up to six such branches, RepVGG three, RepGhost two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.window_layer import PaddingMode
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array
from dryfit_cpu.kernels.constants import Affine, WeightedSum, affine_of, constant_weights, has_constant_weights

_ONE, _NOTHING = np.ones(1, np.float32), np.zeros(1, np.float32)
_MINUS = Affine(None, -_ONE, _NOTHING)


@frozen(eq=False)
class _Term:
    """A convolution of the input, or the input itself, and what it is multiplied by and shifted by afterwards."""

    layer: Convolution | None
    scales: Sequence[Affine] = ()


_Sum = Sequence[_Term]


@frozen(eq=False)
class Branches:
    """The layers of a group that are one convolution.

    Attributes:
        main: the convolution with the largest window, whose geometry is that of all.
        count: how many layers after it belong to them.
        value: their result.
        terms: what that is the sum of.
    """

    main: Convolution
    count: int
    value: Tensor
    terms: _Sum

    def weights(self) -> tuple[Array, Array]:
        """FP32 kernel `[K, C / groups, *window]` and bias `[K]`, summed in FP64 and rounded once."""
        main = self.main
        K, channels = main.num_output_maps, cast("Tensor", main.inputs[0]).shape[1] // main.num_groups
        kernel, bias = np.zeros((K, channels, *main.kernel_size_nd)), np.zeros(K)
        for term in self.terms:
            factor, shift = np.ones(K), np.zeros(K)
            for scale in term.scales:
                factor, shift = factor * scale.factor, shift * scale.factor + scale.shift
            own, offsets = _identity(main, channels), None
            if term.layer is not None:
                own, offsets = constant_weights(term.layer)
            part = kernel[(slice(None), slice(None), *cast("Sequence[slice]", _places(main, term.layer)))]
            part += own.reshape(part.shape) * factor.reshape(K, *[1] * (part.ndim - 1))
            bias += shift if offsets is None else offsets.reshape(K) * factor + shift
        return kernel.astype(np.float32), bias.astype(np.float32)


def branches_of(group: LayerGroup) -> Branches | None:
    """The branches that a group begins with; None where it has no others than the main layer.

    A sum with the input alone is a residual, which costs less to add than its own rounding in the weights is worth.
    """
    main, rest = group.main, group.epilogue
    if not isinstance(main, Convolution) or main.inputs[0] is None:
        return None
    source = main.inputs[0]
    readers = [layer for layer in rest if source in layer.inputs]
    if not any(isinstance(layer, Convolution) or affine_of(layer, source) is not None for layer in readers):
        return None
    sums: dict[str, _Sum] = {source.name: [_Term(None)], main.outputs[0].name: [_Term(main)]}
    count = 0
    for layer in rest:
        found = _summed(layer, sums, main)
        if found is None:
            break
        sums[layer.outputs[0].name] = found
        count += 1
    if not count:
        return None
    value = rest[count - 1].outputs[0]
    inner = sums.keys() - {value.name}
    is_read = any(tensor.name in inner for layer in rest[count:] for tensor in layer.connected_inputs)
    terms = sums[value.name]
    is_placed = all(_places(main, term.layer) is not None for term in terms)
    return None if is_read or not is_placed else Branches(main, count, value, terms)


def summed_weights(group: LayerGroup) -> tuple[Array, Array | None]:
    """Kernel and bias of a group's main layer, with those of the branches beside it."""
    branches = branches_of(group)
    return constant_weights(cast("WeightedSum", group.main)) if branches is None else branches.weights()


def _summed(layer: Layer, sums: dict[str, _Sum], main: Convolution) -> _Sum | None:
    """What a layer computes of sums; None where that is no such sum."""
    read = [tensor for tensor in layer.connected_inputs if tensor.name in sums]
    if isinstance(layer, Convolution):
        is_branch = read == [main.inputs[0]] and layer.inputs[0] is read[0]
        return [_Term(layer)] if is_branch and _is_known(layer) else None
    if len(read) == 1:
        scale = affine_of(layer, read[0])
        return None if scale is None or scale.axis not in (None, 1) else _scaled(sums[read[0].name], scale)
    if not isinstance(layer, Elementwise) or len(read) != 2 or read[0].shape != read[1].shape:
        return None
    first, second = (sums[tensor.name] for tensor in read)
    if layer.op is ElementWiseOperation.SUB:
        second = _scaled(second, _MINUS)
    return [*first, *second] if layer.op in (ElementWiseOperation.SUM, ElementWiseOperation.SUB) else None


def _is_known(layer: Convolution) -> bool:
    return has_constant_weights(layer, {tensor.name: tensor.spec for tensor in layer.connected_inputs})


def _scaled(terms: _Sum, scale: Affine) -> _Sum:
    """A sum times a factor, plus a shift, which is added to it once."""
    factor = attrs.evolve(scale, shift=_NOTHING)
    return [attrs.evolve(term, scales=(*term.scales, factor if number else scale)) for number, term in enumerate(terms)]


def _places(main: Convolution, layer: Convolution | None) -> list[slice] | None:
    """Where in the main layer's window a branch has its own, axis by axis; None where it is not in it.

    The input itself is a window of one place.
    """
    axes = len(main.kernel_size_nd)
    if layer is None:
        window, stride, dilation, before, after = ((one,) * axes for one in (1, 1, 1, 0, 0))
        maps, groups = cast("Tensor", main.inputs[0]).shape[1], main.num_groups
    else:
        window, stride, dilation = layer.kernel_size_nd, layer.stride_nd, layer.dilation_nd
        before, after, maps, groups = layer.pre_padding, layer.post_padding, layer.num_output_maps, layer.num_groups
    is_explicit = all(one is None or one.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN for one in (main, layer))
    if not is_explicit or (maps, groups, stride) != (main.num_output_maps, main.num_groups, main.stride_nd):
        return None
    places = []
    for axis in range(axes):
        step, extent = main.dilation_nd[axis], (main.kernel_size_nd[axis] - 1) * main.dilation_nd[axis]
        own = (window[axis] - 1) * dilation[axis]
        first = main.pre_padding[axis] - before[axis]
        # Both have outputs at the same places for images of any size.
        is_even = main.pre_padding[axis] + main.post_padding[axis] - extent == before[axis] + after[axis] - own
        hop = dilation[axis] if own else step
        if not is_even or not 0 <= first <= extent - own or first % step or hop % step:
            return None
        places.append(slice(first // step, (first + own) // step + 1, hop // step))
    return places


def _identity(main: Convolution, channels: int) -> Array:
    """The kernel that gives the input itself."""
    K = main.num_output_maps
    kernel = np.zeros((K, channels), np.float32)
    kernel[np.arange(K), np.arange(K) % channels] = 1
    return kernel
