"""Single layers with known parameters, from which networks for probes are made.

A candidate is one ONNX node with inputs of its own, so that the verdict on it depends on nothing else in its network.
Its node has its name, which is the name that a board's log shows. The operators are those of opset 13, which TensorRT
8.0 imports, and the values are on both sides of limits and between them: no rule is named here, since which rules a
candidate violates is asked of the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dryfit.attrs_classes import define, frozen

OPSET, IR_VERSION = 13, 7
_SIDE = 16
_CHANNELS = 8

Make = Callable[["ProbeGraph", str], None]


@frozen
class Candidate:
    """A layer for a probe.

    Attributes:
        name: name of its node.
        make: adds it to a graph under this name.
        is_alone: whether it gets a network of its own: parsers of some versions refuse it, which ends a build.
    """

    name: str
    make: Make
    is_alone: bool = False


@define
class ProbeGraph:
    """A graph under construction."""

    nodes: list[Any] = attrs.field(factory=list)
    inputs: list[Any] = attrs.field(factory=list)
    outputs: list[Any] = attrs.field(factory=list)
    constants: list[Any] = attrs.field(factory=list)

    def input(self, name: str, shape: Sequence[int], dtype: int = TensorProto.FLOAT) -> str:
        """Add an input of the network."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def constant(self, name: str, values: Any, dtype: Any = np.float32) -> str:
        """Add a constant."""
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def node(
        self, name: str, operator: str, inputs: Sequence[str], dtype: int = TensorProto.FLOAT, **attributes: Any
    ) -> str:
        """Add a node whose output is an output of the network."""
        output = self.inner(name, operator, inputs, **attributes)
        self.outputs.append(helper.make_tensor_value_info(output, dtype, None))
        return output

    def inner(self, name: str, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node whose output is read by another one."""
        output = f"{name}_out"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=name, **attributes))
        return output


def network_of(candidates: Sequence[Candidate], name: str = "probe") -> onnx.ModelProto:
    """Return a network of candidates, each with inputs and outputs of its own."""
    graph = ProbeGraph()
    for one in candidates:
        one.make(graph, one.name)
    made = helper.make_graph(graph.nodes, name, graph.inputs, graph.outputs, graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="dryfit")
    model.ir_version = IR_VERSION
    return onnx.shape_inference.infer_shapes(model)


def candidates() -> Iterator[Candidate]:
    """Yield all candidates, for each parameter the values next to its limits first."""
    yield from _convolutions()
    yield from _deconvolutions()
    yield from _poolings()
    yield from _activations()
    yield from _elementwise()
    yield from _shapes()
    yield from _matrices()
    yield from _resizes()
    yield from _others()


# Candidates that differ in one number -------------------------------------------------------------------------------


@frozen
class Family:
    """Candidates that differ in one number, for values between those that a board was seen to take and to refuse.

    Attributes:
        make: number -> candidate of a name.
        largest: the largest number of use: larger layers take long to build.
    """

    make: Callable[[str, int], Candidate]
    largest: int


def candidate_of(family: str, number: int) -> Candidate:
    """Return the candidate of a family with a number: `conv_kernel_27`."""
    return FAMILIES[family].make(f"{family}_{number}", number)


def _of(family: str, *numbers: int) -> Iterator[Candidate]:
    return (candidate_of(family, number) for number in numbers)


def _weights(count: int) -> np.ndarray[Any, Any]:
    """Return small values in a pattern, which compress well."""
    return (np.arange(count, dtype=np.float32) % 7 - 3) / 64


def _convolution(
    name: str,
    *,
    kernel: Sequence[int] = (3, 3),
    channels: int = _CHANNELS,
    maps: int = _CHANNELS,
    side: Sequence[int] = (_SIDE, _SIDE),
    batch: int = 1,
    groups: int = 1,
    operator: str = "Conv",
    is_alone: bool = False,
    **attributes: Any,
) -> Candidate:
    def make(graph: ProbeGraph, node: str) -> None:
        inside = (maps, channels // groups) if operator == "Conv" else (channels, maps // groups)
        shape = (*inside, *kernel)
        x = graph.input(f"{node}_x", (batch, channels, *side))
        w = graph.constant(f"{node}_w", _weights(int(np.prod(shape))).reshape(shape))
        graph.node(node, operator, [x, w], kernel_shape=list(kernel), group=groups, **attributes)

    return Candidate(name, make, is_alone)


def _convolutions() -> Iterator[Candidate]:
    small: dict[str, Any] = {"channels": 2, "maps": 2}
    yield from _of("conv_kernel", 32, 33, 31, 24, 16, 8, 1, 40, 64)
    yield from _of("conv_padding", 31, 30, 16, 8, 1)
    yield _convolution("conv_padding_32", kernel=(33, 33), side=(40, 40), pads=[32] * 4, **small)
    yield _convolution("conv_padding_as_kernel", pads=[3] * 4)
    yield _convolution("conv_padding_below_kernel", pads=[2] * 4)
    yield from _of("conv_stride", 8, 9, 7, 4, 2, 16)
    yield from _of("conv_dilation", 32, 33, 31, 24, 16, 8, 2, 40)
    for c in (8192, 8193, 8191, 4096, 1024, 12288):
        yield from _of("conv_maps", c)
        yield from _of("conv_channels", c)
    yield from _of("conv_groups", 8192, 4096, 1024, 64, 2)
    yield from _of("conv_buffer", 128, 256, 512, 1024)
    for width in (1024, 4096, 8000):
        yield _convolution(f"conv_rows_{width}", kernel=(3, 3), channels=64, maps=2, side=(3, width))
    for maps in (16, 64):
        yield _convolution(f"conv_estimate_{maps}", kernel=(7, 7), channels=256, maps=maps, side=(7, 64), is_alone=True)
    yield _convolution("conv_axes_3", kernel=(3, 3, 3), side=(4, 8, 8))
    yield Candidate("conv_computed_kernel", _computed_kernel("Conv"), is_alone=True)


def _computed_kernel(operator: str) -> Make:
    def make(graph: ProbeGraph, node: str) -> None:
        x = graph.input(f"{node}_x", (1, 4, 8, 8))
        w = graph.input(f"{node}_w", (4, 4, 3, 3))
        graph.node(node, operator, [x, w], kernel_shape=[3, 3])

    return make


def _deconvolution(name: str, **settings: Any) -> Candidate:
    return _convolution(name, **{"operator": "ConvTranspose", "kernel": (2, 2), "strides": [2, 2], **settings})


def _deconvolutions() -> Iterator[Candidate]:
    one = _deconvolution
    yield from _of("deconv_kernel", 32, 33, 31, 22, 23, 16, 8, 4, 2, 1)
    yield one("deconv_kernel_not_square", kernel=(2, 4), strides=[2, 4])
    yield one("deconv_stride_not_kernel", kernel=(4, 4), strides=[2, 2])
    yield one("deconv_padding_1", pads=[1, 1, 1, 1])
    yield one("deconv_groups_2", groups=2)
    yield one("deconv_dilation_2", dilations=[2, 2])
    for c in (8192, 8193, 4096):
        yield from _of("deconv_maps", c)
        yield from _of("deconv_channels", c)
    yield one("deconv_axes_3", kernel=(2, 2, 2), strides=[2, 2, 2], side=(4, 4, 4))
    for c in (1024, 4096, 8192):
        yield one(
            f"deconv_estimate_{c}", kernel=(4, 4), strides=[2, 2], channels=c, maps=16, side=(4, 64), is_alone=True
        )
    yield Candidate("deconv_computed_kernel", _computed_kernel("ConvTranspose"), is_alone=True)


def _unary(
    name: str,
    operator: str,
    shape: Sequence[int] = (1, _CHANNELS, _SIDE, _SIDE),
    constants: Sequence[Any] = (),
    dtype: int = TensorProto.FLOAT,
    **attributes: Any,
) -> Candidate:
    """Return a node with one computed input, and constants behind it."""

    def make(graph: ProbeGraph, node: str) -> None:
        names = [graph.input(f"{node}_x", shape, dtype)]
        for index, values in enumerate(constants):
            array = np.asarray(values)
            kind = np.float32 if array.dtype.kind == "f" else np.int64
            names.append("" if array.size == 0 and array.ndim == 0 else graph.constant(f"{node}_{index}", array, kind))
        graph.node(node, operator, names, dtype, **attributes)

    return Candidate(name, make)


_RANKS = {3: (1, _CHANNELS, _SIDE), 5: (1, 2, 4, 8, 8)}


def _poolings() -> Iterator[Candidate]:
    for operator, word in (("MaxPool", "max"), ("AveragePool", "average")):
        yield from _of(f"pool_{word}_window", 8, 9, 7, 4, 2, 1, 12)
        yield _unary(f"pool_{word}_axes_3", operator, (1, 2, 4, 8, 8), kernel_shape=[2, 2, 2])
    yield from _of("pool_stride", 16, 17, 15, 8, 24)
    yield from _of("pool_padding", 7, 4, 1)
    yield _unary("pool_counts_padding", "AveragePool", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
    yield _unary("pool_dilation_2", "MaxPool", kernel_shape=[2, 2], dilations=[2, 2])
    yield _unary("pool_global_8", "GlobalAveragePool", (1, 8, 8, 8))
    yield _unary("pool_global_16", "GlobalAveragePool")


def _activations() -> Iterator[Candidate]:
    for operator in (
        "Relu",
        "Sigmoid",
        "Tanh",
        "Elu",
        "Softplus",
        "Softsign",
        "HardSigmoid",
        "Selu",
        "ThresholdedRelu",
    ):
        yield _unary(f"activation_{operator.lower()}", operator)
    for slope in (0.0, 0.01, 0.1, 1.0, -0.1):
        yield _unary(f"activation_slope_{_word(slope)}", "LeakyRelu", alpha=slope)
    for low, high in ((0.0, 6.0), (0.0, 127.0), (0.0, 128.0), (0.0, 1.0), (0.0, 64.0), (-1.0, 6.0), (1.0, 6.0)):
        yield _unary(f"activation_clip_{_word(low)}_{_word(high)}", "Clip", constants=(low, high))
    for rank, shape in _RANKS.items():
        yield _unary(f"activation_rank_{rank}", "Relu", shape)
    yield from _of("batch", 4096, 4097, 32, 33, 1024, 2048)
    yield from _of("extent", 8192, 8193, 4096, 12288)
    yield _unary("slope_per_channel", "PRelu", constants=(np.full((8, 1, 1), 0.1),))
    yield _unary("slope_of_all", "PRelu", constants=(np.full((1,), 0.1),))
    yield _unary("slope_per_value", "PRelu", constants=(np.full((8, 16, 16), 0.1),))
    yield _unary("slope_rank_3", "PRelu", _RANKS[3], constants=(np.full((8, 1), 0.1),))


def _word(value: float) -> str:
    return f"{value:g}".replace("-", "minus_").replace(".", "_")


def _binary(
    name: str,
    operator: str,
    first: Sequence[int] = (1, _CHANNELS, _SIDE, _SIDE),
    second: Sequence[int] | None = None,
    constant: Any = None,
    dtype: int = TensorProto.FLOAT,
    of_type: int = TensorProto.FLOAT,
    **attributes: Any,
) -> Candidate:
    def make(graph: ProbeGraph, node: str) -> None:
        x = graph.input(f"{node}_x", first, of_type)
        y = (
            graph.input(f"{node}_y", first if second is None else second, of_type)
            if constant is None
            else graph.constant(f"{node}_c", constant)
        )
        graph.node(node, operator, [x, y], dtype, **attributes)

    return Candidate(name, make)


def _elementwise() -> Iterator[Candidate]:
    for operator in ("Add", "Sub", "Mul", "Max", "Min", "Div", "Pow"):
        yield _binary(f"elementwise_{operator.lower()}", operator)
    yield _binary("elementwise_div_constant", "Div", constant=np.full((1, 8, 16, 16), 2.0))
    yield _binary("elementwise_pow_constant", "Pow", constant=np.full((1, 8, 16, 16), 2.0))
    for operator in ("Equal", "Greater", "Less"):
        yield _binary(f"elementwise_{operator.lower()}", operator, dtype=TensorProto.BOOL)
    yield _binary("elementwise_rank_3", "Add", _RANKS[3])
    yield _binary("elementwise_rank_5", "Add", _RANKS[5])
    yield _binary("elementwise_broadcast_channels", "Add", second=(1, 8, 1, 1))
    yield _binary("elementwise_broadcast_one", "Mul", second=(1, 1, 1, 1))
    yield _binary("elementwise_broadcast_rows", "Add", second=(1, 8, 16, 1))
    yield _binary("elementwise_of_int32", "Add", of_type=TensorProto.INT32, dtype=TensorProto.INT32)
    for operator in ("Abs", "Sin", "Cos", "Atan", "Exp", "Log", "Sqrt", "Neg", "Ceil", "Floor", "Erf", "Reciprocal"):
        yield _unary(f"unary_{operator.lower()}", operator)
    yield _unary("unary_rank_3", "Abs", _RANKS[3])
    yield _unary("unary_rank_5", "Abs", _RANKS[5])

    def cast(graph: ProbeGraph, node: str) -> None:
        x, y = graph.input(f"{node}_x", (1, 8, 8, 8)), graph.input(f"{node}_y", (1, 8, 8, 8))
        graph.node(node, "Cast", [graph.inner(f"{node}_before", "Greater", [x, y])], to=TensorProto.FLOAT)

    yield Candidate("cast_of_comparison", cast)


def _shapes() -> Iterator[Candidate]:
    def joined(name: str, axis: int, count: int = 2, shape: Sequence[int] = (1, 8, 8, 8)) -> Candidate:
        def make(graph: ProbeGraph, node: str) -> None:
            names = [graph.input(f"{node}_x{index}", shape) for index in range(count)]
            graph.node(node, "Concat", names, axis=axis)

        return Candidate(name, make)

    for axis, word in ((1, "channels"), (2, "height"), (3, "width"), (0, "batch")):
        yield joined(f"concat_{word}", axis)
    yield joined("concat_one", 1, 1)
    yield joined("concat_many", 1, 16)
    yield joined("concat_rank_3", 0, shape=(8, 8, 8))
    yield joined("concat_rank_5", 1, shape=_RANKS[5])
    four = (1, 8, 16, 16)
    yield _unary("reshape_4_to_4", "Reshape", four, ([1, 16, 8, 16],))
    yield _unary("reshape_4_to_3", "Reshape", four, ([1, 8, 256],))
    yield _unary("reshape_3_to_4", "Reshape", (1, 8, 256), ([1, 8, 16, 16],))
    yield _unary("reshape_4_to_5", "Reshape", four, ([1, 2, 4, 16, 16],))
    yield _unary("reshape_batch", "Reshape", (2, 8, 16, 16), ([1, 16, 16, 16],))
    yield _unary("transpose", "Transpose", four, perm=[0, 2, 3, 1])
    yield _unary("transpose_batch", "Transpose", (2, 8, 4, 4), perm=[1, 0, 2, 3])
    slices: Sequence[tuple[str, Sequence[int], Sequence[Sequence[int]]]] = (
        ("slice_channels", four, ([0], [4], [1], [1])),
        ("slice_height", four, ([2], [8], [2], [1])),
        ("slice_stride_2", four, ([0], [16], [2], [2])),
        ("slice_batch", (2, 8, 4, 4), ([0], [1], [0], [1])),
        ("slice_rank_3", _RANKS[3], ([0], [4], [1], [1])),
        ("slice_rank_5", _RANKS[5], ([0], [1], [1], [1])),
    )
    for name, shape, settings in slices:
        yield _unary(name, "Slice", shape, settings)
    for rank, shape in _RANKS.items():
        yield _unary(f"softmax_rank_{rank}", "Softmax", shape, axis=1)
    for axis in (1, 2, 3):
        yield _unary(f"softmax_axis_{axis}", "Softmax", (1, 8, 4, 4), axis=axis)
    yield from _of("softmax", 1024, 1025, 1000, 512, 1536)
    for operator, word in (("ReduceMax", "max"), ("ReduceMean", "mean"), ("ReduceMin", "min")):
        yield _unary(f"reduce_{word}", operator, axes=[2, 3], keepdims=1)
    for axes, word in (([1], "channels"), ([2], "height"), ([3], "width"), ([1, 2, 3], "chw"), ([0], "batch")):
        yield _unary(f"reduce_{word}", "ReduceMax", (2, 8, 8, 8), axes=axes, keepdims=1)
    yield _unary("reduce_without_dims", "ReduceMax", axes=[2], keepdims=0)
    yield _unary("reduce_rank_3", "ReduceMax", _RANKS[3], axes=[2], keepdims=1)


def _matmul(name: str, first: Sequence[int], second: Sequence[int], *, is_constant: bool = True) -> Candidate:
    constant = _weights(int(np.prod(second))).reshape(tuple(second)) if is_constant else None
    return _binary(name, "MatMul", first, second, constant)


def _flattened(name: str, shape: Sequence[int], outputs: int = 4) -> Candidate:
    def make(graph: ProbeGraph, node: str) -> None:
        x = graph.inner(f"{node}_flat", "Flatten", [graph.input(f"{node}_x", shape)], axis=1)
        count = int(np.prod(shape[1:]))
        w = graph.constant(f"{node}_w", _weights(outputs * count).reshape(outputs, count))
        graph.node(node, "Gemm", [x, w], transB=1)

    return Candidate(name, make)


def _matrices() -> Iterator[Candidate]:
    matmul = _matmul
    yield matmul("matmul_constant", (1, 8, 4, 16), (16, 8))
    yield matmul("matmul_computed", (1, 8, 4, 16), (1, 8, 16, 8), is_constant=False)
    yield matmul("matmul_of_each", (1, 8, 4, 16), (1, 8, 16, 8))
    yield matmul("matmul_rank_2", (4, 16), (16, 8))
    yield matmul("matmul_rank_3", (1, 4, 16), (16, 8))
    for count in (8192, 8193, 4096):
        yield from _of("matmul_summed", count)
        yield from _of("matmul_columns", count)

    flattened = _flattened
    yield flattened("gemm_8192", (1, 8192, 1, 1), 1)
    yield flattened("gemm_8193", (1, 8193, 1, 1), 1)
    yield flattened("gemm_of_map", (1, 32, 16, 16))
    yield flattened("gemm_of_large_map", (1, 32, 17, 16), 1)
    yield flattened("gemm_of_wide_map", (1, 2, 40, 100), 1)
    yield flattened("gemm_of_large_wide_map", (1, 4, 48, 100), 1)
    for outputs in (8192, 8193):
        yield flattened(f"gemm_outputs_{outputs}", (1, 1, 1, 1), outputs)

    def transposed(graph: ProbeGraph, node: str) -> None:
        x, w = graph.input(f"{node}_x", (16, 4)), graph.constant(f"{node}_w", _weights(128).reshape(16, 8))
        graph.node(node, "Gemm", [x, w], transA=1)

    yield Candidate("gemm_transposed", transposed)


def _resize(name: str, scales: Sequence[float], shape: Sequence[int] = (1, 4, 4, 4), **attributes: Any) -> Candidate:
    def make(graph: ProbeGraph, node: str) -> None:
        x = graph.input(f"{node}_x", shape)
        graph.node(node, "Resize", [x, "", graph.constant(f"{node}_s", list(scales))], **attributes)

    return Candidate(name, make)


_NEAREST: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
_LINEAR: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}


def _resizes() -> Iterator[Candidate]:
    resize = _resize
    yield from _of("resize_nearest", 32, 33, 31, 16, 8, 4, 2)
    yield resize("resize_nearest_1_5", (1, 1, 1.5, 1.5), **_NEAREST)
    yield from _of("resize_linear", 4, 5, 3, 2)
    yield resize("resize_linear_1_5", (1, 1, 1.5, 1.5), **_LINEAR)
    yield resize("resize_channels", (1, 2, 2, 2), **_NEAREST)
    yield resize("resize_cubic", (1, 1, 2, 2), mode="cubic", coordinate_transformation_mode="half_pixel")
    yield resize("resize_rank_3", (1, 1, 2), (1, 4, 8), **_NEAREST)
    yield resize("resize_rank_5", (1, 1, 1, 2, 2), (1, 2, 2, 4, 4), **_NEAREST)
    for word in ("half_pixel", "align_corners", "asymmetric"):
        yield resize(f"resize_linear_{word}", (1, 1, 2, 2), mode="linear", coordinate_transformation_mode=word)
        yield resize(
            f"resize_nearest_{word}",
            (1, 1, 2, 2),
            mode="nearest",
            coordinate_transformation_mode=word,
            nearest_mode="round_prefer_floor",
        )


def _others() -> Iterator[Candidate]:
    for size in (9, 11, 7, 5, 3, 4):
        yield _unary(f"lrn_{size}", "LRN", (1, 16, 8, 8), size=size)
    for rank, shape in _RANKS.items():
        yield _unary(f"lrn_rank_{rank}", "LRN", shape, size=5)

    def normalized(name: str, shape: Sequence[int]) -> Candidate:
        ones = np.ones(shape[1])
        return _unary(name, "BatchNormalization", shape, (ones, ones * 0, ones * 0, ones))

    yield normalized("scale_channels", (1, 8, 8, 8))
    yield normalized("scale_rank_3", _RANKS[3])
    yield normalized("scale_rank_5", _RANKS[5])
    yield _unary("instance_normalization", "InstanceNormalization", constants=(np.ones(8), np.zeros(8)), epsilon=1e-5)
    yield _unary("gather", "Gather", constants=([0, 2],), axis=1)
    yield _unary("depth_to_space", "DepthToSpace", blocksize=2)

    def inner_output(graph: ProbeGraph, node: str) -> None:
        inner = graph.node(node, "Relu", [graph.input(f"{node}_x", (1, 8, 8, 8))])
        graph.node(f"{node}_reader", "Sigmoid", [inner])

    yield Candidate("inner_output", inner_output)
    yield _unary("identity", "Identity")


_SMALL: dict[str, Any] = {"channels": 2, "maps": 2}
_WIDE = 1 << 14
FAMILIES: Mapping[str, Family] = {
    "conv_kernel": Family(lambda name, k: _convolution(name, kernel=(k, k), side=(k + 8, k + 8), **_SMALL), 128),
    "conv_padding": Family(
        lambda name, p: _convolution(name, kernel=(32, 32), side=(40, 40), pads=[p] * 4, **_SMALL), 31
    ),
    "conv_stride": Family(lambda name, s: _convolution(name, strides=[s, s], side=(40, 40)), 32),
    "conv_dilation": Family(
        lambda name, d: _convolution(name, dilations=[d, d], side=(2 * d + 8, 2 * d + 8), **_SMALL), 128
    ),
    "conv_maps": Family(lambda name, c: _convolution(name, kernel=(1, 1), channels=1, maps=c, side=(2, 2)), _WIDE),
    "conv_channels": Family(lambda name, c: _convolution(name, kernel=(1, 1), channels=c, maps=1, side=(2, 2)), _WIDE),
    "conv_groups": Family(
        lambda name, g: _convolution(name, kernel=(1, 1), channels=g, maps=g, groups=g, side=(2, 2)), 8192
    ),
    # Kernels that fill the convolution buffer: one takes channels * height * width values.
    "conv_buffer": Family(lambda name, c: _convolution(name, kernel=(16, 16), channels=c, maps=1, side=(16, 16)), 2048),
    "deconv_kernel": Family(
        lambda name, k: _deconvolution(name, kernel=(k, k), strides=[k, k], channels=2, maps=2, side=(4, 4)), 128
    ),
    "deconv_maps": Family(lambda name, c: _deconvolution(name, channels=1, maps=c, side=(2, 2)), _WIDE),
    "deconv_channels": Family(lambda name, c: _deconvolution(name, channels=c, maps=1, side=(2, 2)), _WIDE),
    "pool_max_window": Family(lambda name, w: _unary(name, "MaxPool", _around(w), kernel_shape=[w, w]), 64),
    "pool_average_window": Family(lambda name, w: _unary(name, "AveragePool", _around(w), kernel_shape=[w, w]), 64),
    "pool_stride": Family(
        lambda name, s: _unary(name, "MaxPool", (1, 4, 40, 40), kernel_shape=[2, 2], strides=[s, s]), 64
    ),
    "pool_padding": Family(lambda name, p: _unary(name, "MaxPool", kernel_shape=[8, 8], pads=[p] * 4), 7),
    "batch": Family(lambda name, n: _unary(name, "Relu", (n, 1, 2, 2)), _WIDE),
    "extent": Family(lambda name, n: _unary(name, "Relu", (1, 1, 2, n)), 1 << 16),
    "softmax": Family(lambda name, n: _unary(name, "Softmax", (1, n, 1, 1), axis=1), 8192),
    "matmul_summed": Family(lambda name, n: _matmul(name, (1, 1, 1, n), (n, 1)), _WIDE),
    "matmul_columns": Family(lambda name, n: _matmul(name, (1, 1, 1, 1), (1, n)), _WIDE),
    "gemm_of_map": Family(lambda name, n: _flattened(name, (1, max(n // 16, 1), 4, 4), 1), _WIDE),
    "resize_nearest": Family(lambda name, n: _resize(name, (1, 1, n, n), **_NEAREST), 64),
    "resize_linear": Family(lambda name, n: _resize(name, (1, 1, n, n), **_LINEAR), 64),
    "activation_clip_0": Family(lambda name, n: _unary(name, "Clip", constants=(0.0, float(n))), 1024),
}
"""Beginning of the candidates' names to what they are. A rule is not named here either: which ones look at the number
of a family is asked of the rules."""


def _around(window: int) -> Sequence[int]:
    return (1, _CHANNELS, max(_SIDE, window), max(_SIDE, window))
