"""Operators with weights: convolutions, fully connected layers and products of matrices.

Constant weights are turned into the layer's order once; their scales follow the output channels, which TFLite has on
axis 0 of convolutions and on axis 3 of depthwise ones. A bias of a quantized layer is INT32, or INT64 of INT16 data, in
units of input scale * weight scale: that is its scale here, whatever the file rounds it to, as TFLite adds the integers
as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.slice import Shuffle
from dryfit.network.layers.window_layer import PaddingMode
from dryfit.network.tensor import Array, Tensor
from dryfit_tflite.model_file import Quantization
from dryfit_tflite.operator_view import Operator
from dryfit_tflite.registry import operator

_SAME, _VALID = 0, 1


def padding_mode(op: Operator) -> PaddingMode:
    """Return the padding of a window: SAME puts the odd element behind, as SAME_UPPER does."""
    found = op.option("Padding")
    if found not in (_SAME, _VALID):
        raise op.refusal("The padding must be SAME or VALID", found=found, remedy="Convert the model again")
    return PaddingMode.SAME_UPPER if found == _SAME else PaddingMode.EXPLICIT_ROUND_DOWN


def _weights(op: Operator, index: int, order: Sequence[int], channels: int) -> Tensor:
    """The weights as the layer's input 1, turned by an order of axes.

    Args:
        op: the operator.
        index: which input.
        order: axes of the file in the order of the layer's.
        channels: the layer's axis of output channels.
    """
    value = op.value(index)
    if value.known is None:
        raise op.refusal(
            "Weights must be constant", found=f"{value.tensor.where}, computed at run time", remedy="Freeze the model"
        )
    turned = op.constant_tensor(np.transpose(value.known, order), f"{op.name} weights")
    if not value.is_quantized:
        return turned if turned.dtype is DataType.FLOAT else _cast(op, turned)
    grid = value.grid
    if grid.scale.size > 1 and order[channels] != grid.axis:
        raise op.refusal(
            "The scales of weights must follow the output channels",
            found=f"axis {grid.axis} of {value.tensor.where}",
            allowed=f"axis {order[channels]}",
            remedy="Quantize the model again",
        )
    return op.dequantized(turned, grid, channels)


def _cast(op: Operator, tensor: Tensor) -> Tensor:
    from dryfit.network.layers.quantization import Cast

    return op.add(Cast(to_type=DataType.FLOAT), tensor)


def _bias(op: Operator, index: int, data: int, weights: int) -> Tensor | None:
    """The bias as the layer's input 2: INT32 and INT64 codes are dequantized with input scale * weight scale."""
    if not op.has(index):
        return None
    value = op.value(index)
    known: Array = op.constant(index, "The bias").reshape(-1)
    name = f"{op.name} bias"
    x, w = op.value(data), op.value(weights)
    if known.dtype.kind != "i" or not (x.is_quantized and w.is_quantized):
        return op.constant_tensor(known.astype(np.float32), name)
    scale = np.asarray(x.grid.scale[0] * w.grid.scale, np.float32)
    if known.dtype not in (np.int32, np.int64):
        raise op.refusal(
            "The bias must be INT32 or INT64", found=value.tensor.type_name, remedy="Quantize the model again"
        )
    grid = Quantization(scale, np.zeros(scale.shape, np.int64), 0)
    if op.network.quantize_method in ("", "none"):
        return op.constant_tensor((known * scale.astype(np.float64)).astype(np.float32), name)
    return op.dequantized(op.constant_tensor(known, name), grid, 0)


def _finish(op: Operator, layer: KernelLayer, inputs: list[Tensor | None]) -> None:
    while inputs and inputs[-1] is None:
        inputs.pop()
    result = op.activated(op.add(layer, *inputs), op.option("FusedActivationFunction"))
    op.give(result, first=True)


def _require_images(op: Operator, *indices: int) -> None:
    for index in indices:
        if op.rank(index) != 4:
            raise op.refusal(
                "The input must have four axes", found=op.shape(index), remedy="Convert the model with images"
            )


@operator("CONV_2D")
def convolution(op: Operator) -> None:
    """Convolution; more input channels than the weights have are groups."""
    _require_images(op, 0, 1)
    maps, height, width, channels = op.shape(1)
    layer = Convolution(
        num_output_maps=maps,
        kernel_size_nd=(height, width),
        stride_nd=(op.option("StrideH", 1), op.option("StrideW", 1)),
        dilation_nd=(op.option("DilationHFactor", 1), op.option("DilationWFactor", 1)),
        padding_mode=padding_mode(op),
        num_groups=max(op.shape(0)[3] // max(channels, 1), 1),
    )
    _finish(op, layer, [op.real(0, first=True), _weights(op, 1, (0, 3, 1, 2), 0), _bias(op, 2, 0, 1)])


@operator("DEPTHWISE_CONV_2D")
def depthwise_convolution(op: Operator) -> None:
    """Convolution with a group for each input channel."""
    _require_images(op, 0, 1)
    _, height, width, maps = op.shape(1)
    layer = Convolution(
        num_output_maps=maps,
        kernel_size_nd=(height, width),
        stride_nd=(op.option("StrideH", 1), op.option("StrideW", 1)),
        dilation_nd=(op.option("DilationHFactor", 1), op.option("DilationWFactor", 1)),
        padding_mode=padding_mode(op),
        num_groups=op.shape(0)[3],
    )
    _finish(op, layer, [op.real(0, first=True), _weights(op, 1, (3, 0, 1, 2), 0), _bias(op, 2, 0, 1)])


@operator("TRANSPOSE_CONV")
def transposed_convolution(op: Operator) -> None:
    """Deconvolution, whose padding follows from the extents of the output that input 0 states."""
    _require_images(op, 1, 2)
    maps, height, width, _ = op.shape(1)
    extents = op.ints(0, "The shape of the output")
    if len(extents) != 4:
        raise op.refusal("The shape of the output must have four extents", found=extents, remedy="Convert again")
    strides = (op.option("StrideH", 1), op.option("StrideW", 1))
    before, after = [], []
    for out, extent, window, stride in zip(extents[1:3], op.shape(2)[1:3], (height, width), strides, strict=True):
        whole = (extent - 1) * stride + window
        pre = max(whole - out, 0) // 2 if op.option("Padding") == _SAME else 0
        before.append(pre)
        after.append(whole - out - pre)
    layer = Deconvolution(
        num_output_maps=maps,
        kernel_size_nd=(height, width),
        stride_nd=strides,
        pre_padding=tuple(before),
        post_padding=tuple(after),
    )
    _finish(op, layer, [op.real(2, first=True), _weights(op, 1, (3, 0, 1, 2), 1), _bias(op, 3, 2, 1)])


@operator("FULLY_CONNECTED")
def fully_connected(op: Operator) -> None:
    """Fully connected with constant weights; with others a product of matrices. The last axis is summed over."""
    if op.option("WeightsFormat"):
        raise op.refusal("Shuffled weights are not supported", remedy="Convert the model again")
    if op.rank(1) != 2:
        raise op.refusal("The weights must be a matrix", found=op.shape(1), remedy="Convert the model again")
    outputs, summed = op.shape(1)
    keeps_axes = bool(op.option("KeepNumDims"))
    rows = (*op.shape(0)[:-1], summed) if keeps_axes else (int(np.prod(op.shape(0))) // max(summed, 1), summed)
    if op.value(1).known is None:
        _product_with_computed_weights(op, rows)
        return
    value = op.value(0)
    codes = op.add(Shuffle(reshape_dims=(*rows, 1, 1), zero_is_placeholder=False), op.codes(0))
    data = op.dequantized(codes, value.grid, 0) if value.is_quantized else codes
    inputs = [data, _weights(op, 1, (0, 1), 0), _bias(op, 2, 0, 1)]
    layer = FullyConnected(num_output_channels=outputs)
    result = op.add(layer, *(inputs if inputs[2] is not None else inputs[:2]))
    result = op.activated(result, op.option("FusedActivationFunction"))
    _give_reshaped(op, result, (*rows[:-1], outputs))


def _give_reshaped(op: Operator, result: Tensor, shape: tuple[int, ...]) -> None:
    """Give a result whose codes are reshaped: the quantization stays next to the layer."""
    if not op.output().is_quantized:
        op.give(op.add(Shuffle(reshape_dims=shape, zero_is_placeholder=False), result))
        return
    codes = op.quantized(result)
    op.give_codes(op.add(Shuffle(reshape_dims=shape, zero_is_placeholder=False), codes))


def _product_with_computed_weights(op: Operator, rows: tuple[int, ...]) -> None:
    value = op.value(0)
    codes = op.add(Shuffle(reshape_dims=rows, zero_is_placeholder=False), op.codes(0))
    data = op.dequantized(codes, value.grid, 0) if value.is_quantized else codes
    result = op.add(MatrixMultiply(op1=MatrixOperation.TRANSPOSE), data, op.real(1))
    if op.has(2):
        bias = _bias(op, 2, 0, 1)
        if bias is not None:
            row = op.add(Shuffle(reshape_dims=(*(1,) * (len(rows) - 1), -1), zero_is_placeholder=False), bias)
            result = op.add(Elementwise(op=ElementWiseOperation.SUM), result, row)
    op.give(op.activated(result, op.option("FusedActivationFunction")))


@operator("BATCH_MATMUL")
def batch_matmul(op: Operator) -> None:
    """Product of matrices, each turned if the options say so."""
    rank = max(op.rank(0), op.rank(1))
    operations = [MatrixOperation.TRANSPOSE if op.option(name) else MatrixOperation.NONE for name in ("AdjX", "AdjY")]
    operands = [op.real_of_rank(index, rank) for index in (0, 1)]
    op.give(op.add(MatrixMultiply(op0=operations[0], op1=operations[1]), *operands))
