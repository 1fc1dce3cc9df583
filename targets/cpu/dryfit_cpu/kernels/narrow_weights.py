"""Constant weights that stay narrow: found in a group, and packed as `compiler/weight_words.py` reads them.

And the groups with a matrix product by them: which they are, and what is packed of them.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import Convolution, FullyConnected
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.scale_granularity import block_extents
from dryfit.network.tensor import Shape, Tensor
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Specs
from dryfit_cpu.codes import FLOATS, PANEL_CHANNELS
from dryfit_cpu.kernels.constants import WeightedSum
from dryfit_cpu.kernels.epilogues import Epilogue, epilogue_of
from dryfit_cpu.kernels.narrow_quantization import QUANTIZED, SCALES, can_convert
from dryfit_cpu.kernels.operands import input_of

WORD_BITS = 32


@frozen(eq=False)
class NarrowWeights:
    """Weights of a layer with a matrix product, in the order in which it sums.

    Attributes:
        layer: the one that has them.
        constant: codes of a quantized type, as in the network. Runs do not change them.
        shape: `(N, runs, values)`: for each output channel the runs of weights that lie together.
        scales: `[blocks, N]`, of a floating-point type; a block is of `block` values of the only run, or all.
        block: values.
        global_scale: by which scales are multiplied; 1 where they are not quantized themselves.
    """

    layer: Layer
    constant: Array
    shape: tuple[int, int, int]
    scales: Array
    block: int
    global_scale: float = 1.0

    @property
    def dtype(self) -> DataType:
        """The type of the codes."""
        return DataType.from_numpy(self.constant.dtype)

    @property
    def codes(self) -> Array:
        """The codes `[N, runs, values]`: for a window its places in their order, the input's channels together."""
        codes = self.constant
        if isinstance(self.layer, Convolution):
            return np.moveaxis(codes, 1, -1).reshape(self.shape)
        if isinstance(self.layer, MatrixMultiply) and self.layer.op1 is MatrixOperation.NONE:
            codes = codes.swapaxes(-1, -2)
        return codes.reshape(self.shape)

    @property
    def words(self) -> tuple[int, int, int, int, int]:
        """The shape of the packed words: `[panels, runs, words, 32, 4]`, bytes."""
        N, runs, values = self.shape
        return (panels_of(N), runs, -(-values // weights_in_word(self.dtype)), PANEL_CHANNELS, 4)

    def pack(self) -> dict[str, Array]:
        """Bytes of words, the scales `[panels, blocks, 32]`, and the global scale; channels filled up with zeros."""
        panels, runs, count, _, _ = self.words
        N, _, values = self.shape
        units, bits = weights_in_word(self.dtype), self.dtype.bits
        filled = np.zeros((panels * PANEL_CHANNELS, runs, count * units), np.uint8)
        filled[:N, :, :values] = self.codes.view(np.uint8) & (2**bits - 1)
        # Words of 32 bits with consecutive k of one channel, 32 channels side by side: a vector of words is a vector of
        # channels, and one shift brings the next k of all of them to the lowest bits.
        parts = filled.reshape(panels, PANEL_CHANNELS, runs, count, units).transpose(4, 0, 2, 3, 1)
        words = np.zeros(parts.shape[1:], "<u4")
        for place, part in enumerate(parts):
            words |= part.astype("<u4") << np.uint32(bits * place)
        scales = np.zeros((len(self.scales), panels * PANEL_CHANNELS), self.scales.dtype)
        scales[:, :N] = self.scales
        by_panel = scales.reshape(-1, panels, PANEL_CHANNELS).swapaxes(0, 1)
        return {
            "words": words.view(np.uint8).reshape(self.words),
            "scales": np.ascontiguousarray(by_panel),
            "global_scale": np.array([self.global_scale], np.float32),
        }


def weights_in_word(dtype: DataType) -> int:
    """Weights of a type in a word."""
    return WORD_BITS // dtype.bits


def panels_of(channels: int) -> int:
    """Panels of so many output channels."""
    return -(-channels // PANEL_CHANNELS)


def narrow_weights(group: LayerGroup) -> NarrowWeights | None:
    """The weights of a group's main layer, which the group dequantizes; None where they are of another form.

    Scales are one number, one for each output channel, or one for each block of values that are summed: a block is
    whole words then. They are constants, or dequantized in the group themselves.
    """
    layer = group.main
    tensor = layer.inputs[1] if len(layer.inputs) > 1 else None
    dequantize = dequantization(tensor, group)
    if dequantize is None:
        return None
    codes = cast("Tensor", dequantize.inputs[0]).spec.value
    found = _scales(dequantize, group)
    if codes is None or found is None or DataType.from_numpy(codes.dtype) not in QUANTIZED or not codes.size:
        return None
    scales, global_scale = found
    found_shape = _shape(layer, codes.shape)
    if found_shape is None:
        return None
    channel_axis, (N, runs, values) = found_shape
    split = _by_channel(dequantize, codes, scales, channel_axis)
    if split is None:
        return None
    block, by_channel = split
    block = values if by_channel.shape[0] == 1 else block
    units = weights_in_word(DataType.from_numpy(codes.dtype))
    # A block of whole words has one scale for a word, so that no word is decoded twice. For a window blocks go along
    # the channels, and each place has its own runs: such weights are left to the layers one by one.
    if by_channel.shape[0] > 1 and (runs > 1 or block % units):
        return None
    spread = np.broadcast_to(by_channel, (by_channel.shape[0], N))
    return NarrowWeights(layer, codes, (N, runs, values), spread, block, global_scale)


def dequantization(tensor: Tensor | None, group: LayerGroup) -> Dequantize | None:
    """The layer of the group that dequantizes a tensor, without a zero point."""
    producer = None if tensor is None else tensor.producer
    is_one = isinstance(producer, Dequantize) and producer in group.layers and len(producer.inputs) == 2
    return cast("Dequantize", producer) if is_one else None


def _scales(dequantize: Dequantize, group: LayerGroup) -> tuple[Array, float] | None:
    """(scales, the scale of these) of a dequantization.

    Scales that are rounded to FP16 or BF16 when they are dequantized are packed as that; of others the product is left
    to the run.
    """
    tensor = cast("Tensor", dequantize.inputs[1])
    inner = dequantization(tensor, group)
    if inner is None:
        value = tensor.spec.value
        return None if value is None or DataType.from_numpy(value.dtype) not in SCALES else (value, 1.0)
    numbers, outer = (cast("Tensor", one).spec.value for one in inner.inputs)
    if numbers is None or outer is None:
        return None
    is_plain = inner.to_type is DataType.FLOAT and outer.size == 1 and DataType.from_numpy(numbers.dtype) in SCALES
    if is_plain:
        return numbers, float(outer.astype(np.float32).reshape(()))
    return evaluate(inner, [numbers, outer])[0], 1.0


def _shape(layer: Layer, shape: Shape) -> tuple[int, tuple[int, int, int]] | None:
    """(axis of output channels, (N, runs, values)) of a layer's weights; None where they are of another form."""
    if isinstance(layer, MatrixMultiply):
        rank = len(shape)
        if rank < 2 or layer.op1 is MatrixOperation.VECTOR or any(extent != 1 for extent in shape[:-2]):
            return None
        axes = (rank - 1, rank - 2) if layer.op1 is MatrixOperation.NONE else (rank - 2, rank - 1)
        return axes[0], (shape[axes[0]], 1, shape[axes[1]])
    if isinstance(layer, FullyConnected):
        return 0, (shape[0], 1, math.prod(shape[1:]))
    if isinstance(layer, Convolution):
        return 0, (shape[0], math.prod(shape[2:]), shape[1])
    return None


def _by_channel(dequantize: Dequantize, codes: Array, scales: Array, channels: int) -> tuple[int, Array] | None:
    """(block, scales `[blocks, N or 1]`); None where a scale follows the weights in another way."""
    if scales.size == 1:
        return 0, scales.reshape(1, 1)
    blocks = block_extents(dequantize, codes.shape, scales.shape, dequantize.axis, dequantize.block_shape)
    if scales.ndim == 1 and codes.ndim != 1:
        return (0, scales.reshape(1, -1)) if dequantize.axis == channels else None
    others = [axis for axis in range(codes.ndim) if axis != channels and scales.shape[axis] > 1]
    is_one_by_one = blocks[channels] == 1 or scales.shape[channels] == 1
    if len(others) > 1 or not is_one_by_one:
        return None
    if not others:
        return 0, scales.reshape(1, -1)
    (along,) = others
    if any(extent != 1 for axis, extent in enumerate(codes.shape) if axis not in (along, channels)):
        return None
    return blocks[along], np.moveaxis(scales, along, 0).reshape(scales.shape[along], -1)


NARROW_TYPES = FLOATS | QUANTIZED | {DataType.E8M0}
"""Types of activations that groups with narrow weights may have."""


@frozen(eq=False)
class NarrowGroup:
    """A group with a matrix product by narrow weights.

    Attributes:
        weights: of the main layer.
        source: what the main layer reads: outside of the group, or quantized there.
        dequantize: of the source, in the group; None where it is real.
        epilogue: what follows the sums, without scales.
        bias: FP32 `[N]`.
        quantize: the last layer, if it is one that quantizes.
    """

    weights: NarrowWeights
    source: Tensor
    dequantize: Dequantize | None
    epilogue: Epilogue
    bias: Array
    quantize: Quantize | None


def narrow_group(group: LayerGroup) -> NarrowGroup | None:
    """The parts of a group; None where it is of another form.

    It does not end in INT8, for which devices round in several ways: that is left to the quantize layer's kernel.
    """
    weights = narrow_weights(group)
    if weights is None:
        return None
    last = group.layers[-1]
    quantize = last if isinstance(last, Quantize) else None
    if quantize is not None and quantize.to_type is DataType.INT8:
        return None
    real = LayerGroup(group.layers[:-1]) if quantize is not None else group
    epilogue = epilogue_of(real)
    bias = None if epilogue is None else _bias(group.main, weights.shape[0], epilogue)
    if epilogue is None or bias is None:
        return None
    source = input_of(group)
    return NarrowGroup(weights, source, dequantization(source, group), epilogue, bias, quantize)


def _bias(layer: Layer, channels: int, epilogue: Epilogue) -> Array | None:
    """What is added to the sums; None where they are also multiplied, or where it is not known."""
    bias = np.zeros(channels, np.float32)
    if isinstance(layer, WeightedSum):
        value = layer.bias
        if len(layer.inputs) > 2 and layer.inputs[2] is not None:
            value = layer.inputs[2].spec.value
            if value is None:
                return None
        bias = bias if value is None else value.astype(np.float32).reshape(-1)
    for scale in epilogue.scales:
        if (scale.factor != 1).any():
            return None
        bias = bias + scale.shift
    return bias if bias.shape == (channels,) else None


def accepts_narrow(group: LayerGroup, specs: Specs) -> bool:
    """Whether weights, what is read and what follows are of a form that the native functions have.

    INT8 by INT8 is left to the integer kernels.
    """
    found = narrow_group(group)
    if found is None or any(0 in specs[tensor.name].shape for tensor in (found.source, *group.main.outputs)):
        return False
    inner = [layer for layer in group.prologue if layer is not found.dequantize]
    if found.dequantize is None:
        # One that it has none of, such as one with zero points, may be in the group all the same.
        is_read = specs[found.source.name].dtype in FLOATS and found.source.producer not in group.layers
    else:
        codes_read = specs[cast("Tensor", found.dequantize.inputs[0]).name].dtype
        is_integer = codes_read is DataType.INT8 and found.weights.dtype is DataType.INT8
        is_read = not is_integer and can_convert(found.dequantize, specs)
    ends = found.quantize is None or can_convert(found.quantize, specs)
    is_constant_end = found.quantize is None or cast("Tensor", found.quantize.inputs[1]).spec.value is not None
    return is_read and ends and is_constant_end and all(_is_ours(layer, group, specs) for layer in inner)


def _is_ours(layer: Layer, group: LayerGroup, specs: Specs) -> bool:
    """Whether a dequantization before the main layer is that of its weights, or of somebody's scales."""
    readers = [reader for reader, _ in layer.outputs[0].consumers if reader in group.layers]
    is_scale = all(isinstance(reader, Dequantize) for reader in readers)
    return not is_scale or can_convert(cast("Dequantize", layer), specs)


def fuses_narrow(group: LayerGroup, layer: Layer) -> bool:
    """Whether a group that begins so can take a layer."""
    return narrow_group(LayerGroup((*group.layers, layer))) is not None


def pack_narrow(group: LayerGroup) -> dict[str, Array]:
    """Words and scales of the weights, and the bias `[panels * 32]`."""
    found = cast("NarrowGroup", narrow_group(group))
    bias = np.zeros(panels_of(found.bias.size) * PANEL_CHANNELS, np.float32)
    bias[: found.bias.size] = found.bias
    return {**found.weights.pack(), "bias": bias}
