"""For each rule of the DLA with limits: a layer in which what it looks at has a value."""

from tests.targets.dla.questions import (
    activation,
    concatenation,
    convolution,
    deconvolution,
    elementwise,
    fully_connected,
    lrn,
    parametric_relu,
    pooling,
    pooling_with_indices,
    product,
    reduction,
    resize,
    scale,
    shuffle,
    softmax,
    unary,
    window,
)


def _rank(rank):
    return (1, 16, 8, 8)[:rank] if rank <= 4 else (1,) * (rank - 4) + (1, 16, 8, 8)


def _hwc4(groups):
    layer = convolution((1, 4 * groups, 16, 16), maps=4 * groups, num_groups=groups)
    layer.inputs[0].allowed_formats = frozenset({"DLA_HWC4"})
    return layer


def _gemm(inputs):
    layer = fully_connected((1, 1, 1, inputs) if inputs <= 8192 else (1, 1, inputs, 1))
    layer.onnx_nodes = ("gemm",)
    return layer


def _product(first):
    shapes = {"NONE": (1, 1, 4, 16), "TRANSPOSE": (1, 1, 16, 4), "VECTOR": (1, 1, 16)}
    return product(shapes[first], ops=(first, "NONE"))


# Rule id -> the layer in which what the rule looks at has the value.
LAYERS = {
    "dla.batch": lambda v: activation(shape=(v, 16, 8, 8)),
    "dla.batch_7": lambda v: activation(shape=(v, 16, 8, 8)),
    "dla.extents": lambda v: activation(shape=(1, 16, 8, v)),
    "dla.convolution.spatial_axes": lambda v: convolution((1, 16, 8, 8, 8)[: v + 2], kernel=(3,) * v),
    "dla.convolution.kernel": lambda v: convolution(kernel=(v, 3)),
    "dla.convolution.padding": lambda v: convolution(kernel=(32, 32), pre_padding=(v, 0)),
    "dla.convolution.stride": lambda v: convolution(stride_nd=(v, 1)),
    "dla.convolution.dilation": lambda v: convolution((1, 4, 80, 8), dilation_nd=(v, 1)),
    "dla.convolution.output_maps": lambda v: convolution(maps=v),
    "dla.convolution.input_channels": lambda v: convolution((1, v, 8, 8)),
    "dla.convolution.groups": lambda v: convolution((1, v, 8, 8), maps=v, num_groups=v),
    "dla.convolution.groups_hwc4": _hwc4,
    "dla.fully_connected.outputs": lambda v: fully_connected(outputs=v),
    "dla.fully_connected.inputs": lambda v: fully_connected((1, v, 1, 1)),
    "dla.fully_connected.flattened": _gemm,
    "dla.matrix_multiply.first_operand": _product,
    "dla.matrix_multiply.summed": lambda v: product((1, 1, 4, v), (1, 1, v, 8)),
    "dla.matrix_multiply.columns": lambda v: product(b=(1, 1, 16, v)),
    "dla.matrix_multiply.rank": lambda v: product((1,) * (v - 2) + (4, 16), (1,) * (v - 2) + (16, 8)),
    "dla.deconvolution.spatial_axes": lambda v: deconvolution((1, 16, 8, 8, 8)[: v + 2], kernel=(2,) * v),
    "dla.deconvolution.square_kernel": lambda v: deconvolution(kernel=(v, v), stride_nd=(2, 2)),
    "dla.deconvolution.square_stride": lambda v: deconvolution(stride_nd=(v, v)),
    "dla.deconvolution.padding": lambda v: deconvolution(post_padding=(v, 0)),
    "dla.deconvolution.groups": lambda v: deconvolution(num_groups=v),
    "dla.deconvolution.dilation": lambda v: deconvolution(dilation_nd=(v, 1)),
    "dla.deconvolution.output_maps": lambda v: deconvolution(maps=v),
    "dla.deconvolution.input_channels": lambda v: deconvolution((1, v, 8, 8)),
    "dla.unary.operation": unary,
    "dla.unary.operation_xavier": unary,
    "dla.unary.operation_8_6_11": unary,
    "dla.unary.rank": lambda v: unary(shape=_rank(v)),
    "dla.lrn.window": lrn,
    "dla.lrn.rank": lambda v: lrn(shape=_rank(v)),
    "dla.parametric_relu.rank": lambda v: parametric_relu(_rank(v)),
    "dla.resize.rank": lambda v: resize((1,) * v, shape=_rank(v)),
    "dla.resize.scales": lambda v: resize((1,) * v, shape=_rank(v)),
    "dla.resize.outer_scales": lambda v: resize((1, v, 2, 2)),
    "dla.resize.mode": lambda v: resize(mode=v),
    "dla.resize.mode_8_3": lambda v: resize(mode=v),
    "dla.resize.nearest_scales": lambda v: resize((1, 1, v, 1)),
    "dla.resize.linear_scales": lambda v: resize((1, 1, v, 1), "LINEAR"),
    "dla.resize.antialias": lambda v: resize(antialias=v),
    "dla.reduce.operation": reduction,
    "dla.reduce.platform": lambda v: reduction(),
    "dla.reduce.rank": lambda v: reduction(shape=_rank(v), axes=(v - 1,)),
    "dla.reduce.keep_dims": lambda v: reduction(keep_dims=v),
    "dla.shuffle.rank": lambda v: shuffle(_rank(v)),
    "dla.shuffle.reshaped_rank": lambda v: shuffle(reshape={3: (1, 32, 32), 4: (1, 32, 8, 4), 5: (1, 2, 8, 8, 8)}[v]),
    "dla.slice.rank": lambda v: window((0,) * v, _rank(v), (1,) * v, _rank(v)),
    "dla.slice.stride": lambda v: window(stride=(1, 1, v, 1)),
    "dla.slice.mode": lambda v: window(mode=v),
    "dla.slice.mode_10_4": lambda v: window(mode=v),
    "dla.pooling.type": lambda v: pooling(kind=v),
    "dla.pooling.spatial_axes": lambda v: pooling((1, 16, 8, 8, 8)[: v + 2], window=(2,) * v),
    "dla.pooling.window": lambda v: pooling(window=(v, 2)),
    "dla.pooling.padding": lambda v: pooling(window=(8, 8), pre_padding=(v, 0)),
    "dla.pooling.stride": lambda v: pooling(stride_nd=(v, 1)),
    "dla.pooling.count_includes_padding": lambda v: pooling(
        kind="AVERAGE", pre_padding=(1, 1), average_count_excludes_padding=v
    ),
    "dla.pooling.dilation": lambda v: pooling(dilation_nd=(v, 1)),
    "dla.pooling.indices": pooling_with_indices,
    "dla.activation.type": activation,
    "dla.activation.type_8_1": activation,
    "dla.activation.negative_slope": lambda v: activation("RELU", alpha=v),
    "dla.activation.clip_lower": lambda v: activation("CLIP", alpha=v, beta=6.0),
    "dla.activation.clip_upper": lambda v: activation("CLIP", beta=v),
    "dla.activation.rank": lambda v: activation(shape=_rank(v)),
    "dla.elementwise.operation": elementwise,
    "dla.elementwise.operation_xavier": elementwise,
    "dla.elementwise.operation_8_6_11": elementwise,
    "dla.elementwise.operation_8_1": elementwise,
    "dla.elementwise.rank": lambda v: elementwise(a=_rank(v), b=_rank(v)),
    "dla.concatenation.inputs": lambda v: concatenation([(1, 16, 8, 8)] * v),
    "dla.concatenation.rank": lambda v: concatenation([_rank(v)] * 2),
    "dla.scale.mode": lambda v: scale(mode=v),
    "dla.scale.rank": lambda v: scale(shape=_rank(v)),
    "dla.softmax.platform": lambda v: softmax(),
    "dla.softmax.rank": lambda v: softmax(_rank(v)),
    "dla.softmax.optimized_axis": lambda v: softmax((1, 16, 8, v), axis=3),
    "dla.sparsity.platform": lambda v: convolution(),
    "dla.sparsity.input_channels": lambda v: convolution((1, v, 8, 8), (1, 1), 64),
    "dla.sparsity.weight_size": lambda v: convolution((1, v, 1, 1), (1, 1), 1),
    "dla.sparsity.weight_size_newer": lambda v: convolution((1, v, 1, 1), (1, 1), 1),
    "dla.sparsity.output_maps": lambda v: convolution(maps=64 + v),
    "dla.sparsity.full_gain": lambda v: convolution((1, 128 + v, 8, 8), (1, 1)),
}
