"""Models of one layer, at the shapes that the measured networks have, in FP32 and where it makes sense in INT8.

The layer's node is called `layer`. An INT8 model reads and writes quantized values, so that nothing but the layer runs:
signed for dryfit, and signed or unsigned for a peer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

OPSET = 20
NODE = "layer"
_IN_SCALE, _OUT_SCALE, _WEIGHT_SCALE = np.float32(0.02), np.float32(0.05), np.float32(0.005)

_generator = np.random.default_rng(0)


@attrs.frozen
class LayerCase:
    """One layer.

    Attributes:
        name: for people.
        kind: the group of the table.
        operator: of ONNX.
        inputs: shapes.
        weights: shapes of constant inputs that are random.
        constants: constant inputs with these values, after the weights.
        attributes: of the node.
        is_quantizable: whether it is measured in INT8 too.
    """

    name: str
    kind: str
    operator: str
    inputs: Sequence[tuple[int, ...]]
    weights: Sequence[tuple[int, ...]] = ()
    constants: Sequence[Array] = ()
    attributes: Mapping[str, Any] = attrs.field(factory=dict)
    is_quantizable: bool = False


def fp32_model(case: LayerCase) -> bytes:
    """The layer alone."""
    inputs = [(f"x{index}", TensorProto.FLOAT, shape) for index, shape in enumerate(case.inputs)]
    constants = {f"w{index}": _weights(shape) for index, shape in enumerate(case.weights)}
    constants |= {f"c{index}": value for index, value in enumerate(case.constants)}
    names = [name for name, _, _ in inputs] + list(constants)
    node = helper.make_node(case.operator, names, ["y"], NODE, **case.attributes)
    return _model([node], inputs, constants)


def int8_model(case: LayerCase, *, is_signed: bool, weight_zero: int = 0) -> bytes:
    """The layer between DequantizeLinear and QuantizeLinear; weights signed, with a scale for each output channel.

    A second weight is a bias, INT32. Unsigned values have their zero point at 128. Weights with a zero point are those
    that ONNX Runtime's quantizer writes for UINT8, 128 lower: most of them are near it.
    """
    kind, numpy_kind = (TensorProto.INT8, np.int8) if is_signed else (TensorProto.UINT8, np.uint8)
    zero = np.array(0 if is_signed else 128, numpy_kind)
    constants: dict[str, Array] = {"x_scale": np.array(_IN_SCALE), "y_scale": np.array(_OUT_SCALE), "zero": zero}
    nodes, names = [], []
    for index, _ in enumerate(case.inputs):
        nodes.append(helper.make_node("DequantizeLinear", [f"x{index}", "x_scale", "zero"], [f"dx{index}"]))
        names.append(f"dx{index}")
    for index, shape in enumerate(case.weights):
        channels = case.weights[0][0]
        scale = np.full(channels, _WEIGHT_SCALE * (_IN_SCALE if index else 1), np.float32)
        value = _generator.integers(-127, 128, shape) if index == 0 else _generator.integers(-1000, 1000, shape)
        if index == 0 and weight_zero:
            value = np.clip(np.rint(_generator.standard_normal(shape) * 30) + weight_zero, -128, 127)
        integer = np.int8 if index == 0 else np.int32
        constants |= {f"w{index}": value.astype(integer), f"w{index}_scale": scale}
        constants[f"w{index}_zero"] = np.full(channels, 0 if index else weight_zero, integer)
        parts = [f"w{index}", f"w{index}_scale", f"w{index}_zero"]
        nodes.append(helper.make_node("DequantizeLinear", parts, [f"dw{index}"], axis=0))
        names.append(f"dw{index}")
    constants |= {f"c{index}": value for index, value in enumerate(case.constants)}
    names += [f"c{index}" for index in range(len(case.constants))]
    nodes.append(helper.make_node(case.operator, names, ["real"], NODE, **case.attributes))
    nodes.append(helper.make_node("QuantizeLinear", ["real", "y_scale", "zero"], ["y"]))
    return _model(nodes, [(f"x{index}", kind, shape) for index, shape in enumerate(case.inputs)], constants)


def feeds(model: bytes) -> dict[str, Array]:
    """Random inputs of a model: bytes of their whole range, so that a kernel that saturates shows it."""
    found = {}
    for tensor in onnx.load_from_string(model).graph.input:
        shape = [extent.dim_value for extent in tensor.type.tensor_type.shape.dim]
        kind = helper.tensor_dtype_to_np_dtype(tensor.type.tensor_type.elem_type)
        is_real, low, high = np.issubdtype(kind, np.floating), 0, 100
        if kind in (np.int8, np.uint8):
            low, high = np.iinfo(kind).min, np.iinfo(kind).max + 1
        values = _generator.standard_normal(shape) if is_real else _generator.integers(low, high, shape)
        found[tensor.name] = values.astype(kind)
    return found


def _weights(shape: tuple[int, ...]) -> Array:
    return (_generator.standard_normal(shape) / np.sqrt(max(1, int(np.prod(shape[1:]))))).astype(np.float32)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, int, tuple[int, ...]]],
    constants: Mapping[str, Array],
) -> bytes:
    graph = helper.make_graph(
        nodes,
        NODE,
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    return bytes(inferred.SerializeToString())


# The cases ------------------------------------------------------------------------------------------------------------


def _convolution(
    name: str, C: int, K: int, extent: int, k: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> LayerCase:
    kind = "depthwise convolution" if groups == C else "convolution"
    pads, strides = [k // 2 * dilation] * 4, [stride] * 2
    title = f"{name}: {k}x{k}{f' stride {stride}' if stride > 1 else ''}, {C} to {K}, {extent}x{extent}"
    title += f", dilation {dilation}" if dilation > 1 else ""
    title += f", {groups} groups" if 1 < groups < C else ""
    weights = [(K, C // groups, k, k), (K,)]
    attributes = {"pads": pads, "strides": strides, "group": groups, "dilations": [dilation] * 2}
    return LayerCase(title, kind, "Conv", [(1, C, extent, extent)], weights, (), attributes, is_quantizable=True)


def _pooling(name: str, operator: str, C: int, extent: int, k: int, stride: int) -> LayerCase:
    attributes = {"kernel_shape": [k, k], "strides": [stride, stride], "pads": [k // 2] * 4}
    title = f"{name}: {operator} {k}x{k} stride {stride}, {C}, {extent}x{extent}"
    return LayerCase(title, "pooling", operator, [(1, C, extent, extent)], (), (), attributes, operator == "MaxPool")


def layer_cases() -> Iterator[LayerCase]:
    """Every kind of layer that the networks have, and those of others that kernels serve."""
    yield from _windows()
    yield from _other_layers()


def _windows() -> Iterator[LayerCase]:
    """Convolutions and poolings."""
    yield _convolution("ResNet-50", 3, 64, 224, 7, 2)
    yield _convolution("ResNet-50", 64, 64, 56, 3)
    yield _convolution("ResNet-50", 64, 256, 56, 1)
    yield _convolution("ResNet-50", 256, 512, 56, 1, 2)
    yield _convolution("ResNet-50", 128, 128, 28, 3)
    yield _convolution("ResNet-50", 512, 128, 28, 1)
    yield _convolution("ResNet-50", 256, 256, 14, 3)
    yield _convolution("ResNet-50", 512, 512, 7, 3)
    yield _convolution("ResNet-50", 2048, 512, 7, 1)
    yield _convolution("MobileNetV2", 3, 32, 224, 3, 2)
    yield _convolution("MobileNetV2", 16, 96, 112, 1)
    yield _convolution("MobileNetV2", 96, 24, 56, 1)
    yield _convolution("MobileNetV2", 320, 1280, 7, 1)
    yield _convolution("SqueezeNet", 16, 64, 55, 3)
    yield _convolution("DenseNet-121", 256, 128, 28, 1)
    yield _convolution("DenseNet-121", 128, 32, 28, 3)
    yield _convolution("Inception v2", 64, 192, 56, 3)
    yield _convolution("Inception v2", 128, 160, 28, 3, 2)
    yield _convolution("ResNeXt", 128, 128, 56, 3, 1, 32)
    yield _convolution("DeepLabV3", 960, 256, 16, 3, dilation=12)
    yield _convolution("DeepLabV3", 960, 256, 16, 3, dilation=24)
    yield _convolution("MobileNetV2", 32, 32, 112, 3, 1, 32)
    yield _convolution("MobileNetV2", 96, 96, 112, 3, 2, 96)
    yield _convolution("MobileNetV2", 384, 384, 14, 3, 1, 384)
    yield _convolution("MobileNetV2", 960, 960, 7, 3, 1, 960)
    yield _convolution("MobileNetV3", 240, 240, 28, 5, 1, 240)
    yield _pooling("ResNet-50", "MaxPool", 64, 112, 3, 2)
    yield _pooling("Inception v2", "AveragePool", 192, 28, 3, 1)
    yield LayerCase("ResNet-50: average of 2048, 7x7", "pooling", "GlobalAveragePool", [(1, 2048, 7, 7)])
    yield from _volumes()


def _volumes() -> Iterator[LayerCase]:
    """Windows over three spatial axes, at shapes of networks for videos."""
    sides, along = {"pads": [1] * 6}, {"pads": [1, 0, 0, 1, 0, 0]}
    yield LayerCase("C3D: 3x3x3, 64 to 128, 8x28x28", "convolution of volumes", "Conv", [(1, 64, 8, 28, 28)],
                    [(128, 64, 3, 3, 3), (128,)], attributes=sides, is_quantizable=True)  # fmt: skip
    yield LayerCase("C3D: 3x3x3, 3 to 64, 16x56x56", "convolution of volumes", "Conv", [(1, 3, 16, 56, 56)],
                    [(64, 3, 3, 3, 3), (64,)], attributes=sides, is_quantizable=True)  # fmt: skip
    yield LayerCase("R(2+1)D: 3x1x1, 144 to 64, 8x28x28", "convolution of volumes", "Conv", [(1, 144, 8, 28, 28)],
                    [(64, 144, 3, 1, 1), (64,)], attributes=along, is_quantizable=True)  # fmt: skip
    yield LayerCase("C3D: MaxPool 2x2x2 stride 2, 128, 8x28x28", "pooling of volumes", "MaxPool", [(1, 128, 8, 28, 28)],
                    attributes={"kernel_shape": [2] * 3, "strides": [2] * 3}, is_quantizable=True)  # fmt: skip
    yield LayerCase("AveragePool 3x3x3, 64, 8x28x28", "pooling of volumes", "AveragePool", [(1, 64, 8, 28, 28)],
                    attributes={"kernel_shape": [3] * 3, **sides})  # fmt: skip


def _other_layers() -> Iterator[LayerCase]:
    image, wide = (1, 64, 112, 112), (1, 256, 56, 56)
    yield LayerCase("ResNet-50: sum of 256, 56x56", "elementwise", "Add", [wide, wide], is_quantizable=True)
    yield LayerCase("MobileNetV2: clip of 96, 112x112", "activation", "Clip", [(1, 96, 112, 112)], (),
                    [np.array(0, np.float32), np.array(6, np.float32)])  # fmt: skip
    for operator in ("Relu", "Sigmoid", "Tanh", "Elu", "Softplus", "Gelu", "HardSwish"):
        yield LayerCase(f"{operator} of 64, 112x112", "activation", operator, [image])
    yield LayerCase("PRelu of 64, 112x112", "activation", "PRelu", [image], [(64, 1, 1)])
    for operator in ("Exp", "Abs", "Erf", "Round"):
        yield LayerCase(f"{operator} of 64, 112x112", "unary", operator, [image])
    rows, tokens = (1, 128, 768), {"keepdims": 1}
    yield LayerCase("square of 128 rows of 768", "elementwise", "Pow", [(1, 128, 768)], (), [np.array(2, np.float32)])
    yield LayerCase("mean of 768", "reduction", "ReduceMean", [rows], (), [np.array([2])], tokens)
    yield LayerCase("maximum of 128 rows", "reduction", "ReduceMax", [rows], (), [np.array([1])], tokens)
    yield LayerCase("sum of 64 channels, 112x112", "reduction", "ReduceSum", [image], (), [np.array([1])], tokens)
    yield LayerCase("DenseNet-121: concatenation of 128 and 32, 28x28", "concatenation", "Concat",
                    [(1, 128, 28, 28), (1, 32, 28, 28)], attributes={"axis": 1})  # fmt: skip
    yield LayerCase("ResNet-50: 2048 to 1000", "matrix product", "Gemm", [(1, 2048)], [(1000, 2048), (1000,)],
                    attributes={"transB": 1})  # fmt: skip
    yield LayerCase("ResNet-50, batch 32: 2048 to 1000", "matrix product", "Gemm", [(32, 2048)],
                    [(1000, 2048), (1000,)], attributes={"transB": 1})  # fmt: skip
    yield LayerCase("attention: 12 products 128x64x128", "matrix product", "MatMul", [(12, 128, 64), (12, 64, 128)])
    yield LayerCase("ResNet-50: softmax of 1000", "softmax", "Softmax", [(1, 1000)], attributes={"axis": 1})
    yield LayerCase("attention: softmax of 128", "softmax", "Softmax", [(1, 12, 128, 128)], attributes={"axis": 3})
    yield LayerCase("deconvolution 4x4 stride 2, 64 to 32, 56x56", "deconvolution", "ConvTranspose", [(1, 64, 56, 56)],
                    [(64, 32, 4, 4)], attributes={"strides": [2, 2], "pads": [1, 1, 1, 1]})  # fmt: skip
    yield LayerCase("deconvolution 4x4 stride 2, 64 to 3, 56x56", "deconvolution", "ConvTranspose", [(1, 64, 56, 56)],
                    [(64, 3, 4, 4)], attributes={"strides": [2, 2], "pads": [1, 1, 1, 1]})  # fmt: skip
    yield LayerCase("deconvolution 2x2x2 stride 2, 64 to 32, 8x28x28", "deconvolution", "ConvTranspose",
                    [(1, 64, 8, 28, 28)], [(64, 32, 2, 2, 2)], attributes={"strides": [2, 2, 2]})  # fmt: skip
    yield LayerCase("depthwise deconvolution 4x4 stride 2, 64, 56x56", "deconvolution", "ConvTranspose",
                    [(1, 64, 56, 56)], [(64, 1, 4, 4)],
                    attributes={"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 64})  # fmt: skip
    yield LayerCase("resize x2 linear, 64, 112x112", "resize", "Resize", [image], (),
                    [np.empty(0, np.float32), np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"})  # fmt: skip
    yield LayerCase("resize x2 nearest, 64, 112x112", "resize", "Resize", [image], (),
                    [np.empty(0, np.float32), np.array([1, 1, 2, 2], np.float32)], {"mode": "nearest"})  # fmt: skip
    yield LayerCase("local response over 5 of 64, 56x56", "normalization", "LRN", [(1, 64, 56, 56)],
                    attributes={"size": 5})  # fmt: skip
    yield LayerCase("instance of 64, 112x112", "normalization", "InstanceNormalization", [image], [(64,), (64,)])
    yield LayerCase("layer of 768", "normalization", "LayerNormalization", [(1, 128, 768)], [(768,), (768,)])
    scale, zero = np.array(0.05, np.float32), np.array(0, np.int8)
    yield LayerCase("64, 112x112", "quantize", "QuantizeLinear", [image], (), [scale, zero])
    yield LayerCase("64 to the last axis, 112x112", "reformat", "Transpose", [image], attributes={"perm": [0, 2, 3, 1]})
