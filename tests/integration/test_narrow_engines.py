"""Engines with weights and activations narrower than INT8, beside ONNX Runtime and ONNX's reference evaluator."""

from __future__ import annotations

import tracemalloc

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import dryfit
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.quantization import Dequantize, DynamicQuantize
from dryfit.reference.executor import run_reference

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="ONNX Runtime is not installed; it has no wheel for this Python"
)

BLOCK = 32


def model_of(nodes, initializers, shape, outputs, dtype=TensorProto.FLOAT, opset=21):
    """A model from x to y."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", dtype, outputs)],
        initializers,
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11 if opset > 21 else 10)


def narrow_initializer(name, dtype, codes):
    """A tensor of a type of 4 or 8 bits."""
    return helper.make_tensor(name, dtype, codes.shape, codes.astype(np.float32).reshape(-1))


def built(network):
    config = dryfit.Builder().create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    return dryfit.Builder().build_engine(network, config)


def engine_of(model):
    return built(dryfit.network_from_onnx(model.SerializeToString()))


def result(engine, x):
    return next(iter(engine.create_execution_context().run({"x": x}).values()))


def onnxruntime_result(model, x):
    """What ONNX Runtime makes of a model as it is, without joining its nodes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def weight_only_model(rows, depth, columns, dtype=np.float32, seed=0):
    """(model of a product with INT4 weights in blocks of 32 along K and a bias, codes, scales)."""
    generator = np.random.default_rng(seed)
    codes = generator.integers(-8, 8, (depth, columns))
    scales = generator.uniform(0.01, 0.02, (depth // BLOCK, columns)).astype(dtype)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["real"], axis=0, block_size=BLOCK, name="weights"),
        helper.make_node("MatMul", ["x", "real"], ["product"], name="product"),
        helper.make_node("Add", ["product", "b"], ["y"], name="bias"),
    ]
    initializers = [
        narrow_initializer("w", TensorProto.INT4, codes),
        numpy_helper.from_array(scales, "s"),
        numpy_helper.from_array(generator.standard_normal(columns).astype(dtype), "b"),
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model_of(nodes, initializers, [rows, depth], [rows, columns], kind), codes, scales


@pytest.mark.parametrize("rows", [1, 16])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_int4_weights_in_blocks_give_what_onnx_runtime_gives(rows, dtype, tmp_path):
    model, _, _ = weight_only_model(rows, 256, 96, dtype)
    x = np.random.default_rng(1).standard_normal((rows, 256)).astype(dtype)
    engine = engine_of(model)
    (operation,) = engine.plan.operations
    assert operation.kernel == "cpu.narrow_matrix_multiply"
    assert operation.precision is dryfit.DataType.from_numpy(np.dtype(dtype))
    assert operation.weights["words"].nbytes == 256 * 96 // 2
    assert operation.weights["scales"].dtype == dtype
    actual = result(engine, x)
    tolerance = 2e-5 if dtype is np.float32 else 2e-2
    np.testing.assert_allclose(actual, onnxruntime_result(model, x), rtol=tolerance, atol=tolerance)
    engine.save(tmp_path / "narrow.engine")
    np.testing.assert_array_equal(result(dryfit.Engine.load(tmp_path / "narrow.engine"), x), actual)


def test_the_kernel_that_onnx_runtime_has_for_int4_weights_gives_the_same():
    model, codes, scales = weight_only_model(3, 128, 64)
    blocks = (codes + 8).astype(np.uint8).T.reshape(64, -1, BLOCK)
    packed = blocks[..., ::2] | blocks[..., 1::2] << 4
    node = helper.make_node(
        "MatMulNBits",
        ["x", "w", "s"],
        ["y"],
        domain="com.microsoft",
        K=128,
        N=64,
        bits=4,
        block_size=BLOCK,
        accuracy_level=1,
    )
    initializers = [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales.T.reshape(-1).copy(), "s")]
    peer = model_of([node], initializers, [3, 128], [3, 64])
    x = np.random.default_rng(2).standard_normal((3, 128)).astype(np.float32)
    bias = numpy_helper.to_array(model.graph.initializer[2])
    expected = onnxruntime_result(peer, x) + bias
    np.testing.assert_allclose(result(engine_of(model), x), expected, rtol=2e-5, atol=2e-5)


def test_weights_stay_narrow_where_a_network_in_fp32_is_computed_in_fp16():
    model, _, _ = weight_only_model(3, 256, 96)
    config = dryfit.Builder().create_builder_config()
    config.default_device_type = dryfit.DeviceType.CPU
    config.set_flag(dryfit.BuilderFlag.FP16)
    engine = dryfit.Builder().build_engine(dryfit.network_from_onnx(model.SerializeToString()), config)
    (product,) = [one for one in engine.plan.operations if one.kernel == "cpu.narrow_matrix_multiply"]
    assert product.precision is dryfit.DataType.HALF
    assert product.source_layers[:2] == ["weights", "product"]
    assert {layer.kind for layer in engine.plan.network.layers} == {
        "constant", "cast", "dequantize", "matrix_multiply", "elementwise"
    }  # fmt: skip
    x = np.random.default_rng(1).standard_normal((3, 256)).astype(np.float32)
    np.testing.assert_allclose(result(engine, x), onnxruntime_result(model, x), rtol=1e-2, atol=1e-2)


def test_no_run_holds_a_copy_of_the_weights_in_fp32():
    model, _, _ = weight_only_model(1, 1024, 1024)
    engine = engine_of(model)
    x = np.zeros((1, 1024), np.float32)
    result(engine, x)  # what is loaded once is loaded
    tracemalloc.start()
    try:
        result(engine, x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1024 * 1024  # an FP32 copy has four times as much, and even the codes fill this


def fp8_model(operator, shape, weights_shape, outputs):
    """x and weights quantized to FP8 around an operator, whose result is quantized too."""
    generator = np.random.default_rng(3)
    codes = generator.standard_normal(weights_shape).astype(ml_dtypes.float8_e4m3fn)
    axis = 0 if operator == "Conv" else 1
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "zero"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["wd"], axis=axis),
        helper.make_node(operator, ["xd", "wd"], ["product"], name="product"),
        helper.make_node("QuantizeLinear", ["product", "ys", "zero"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "ys"], ["y"]),
    ]
    scales = generator.uniform(0.01, 0.02, weights_shape[axis]).astype(np.float32)
    initializers = [
        narrow_initializer("w", TensorProto.FLOAT8E4M3FN, codes),
        helper.make_tensor("zero", TensorProto.FLOAT8E4M3FN, [], [0.0]),
        numpy_helper.from_array(scales, "ws"),
        numpy_helper.from_array(np.array(0.01, np.float32), "xs"),
        numpy_helper.from_array(np.array(0.02, np.float32), "ys"),
    ]
    return model_of(nodes, initializers, shape, outputs)


@pytest.mark.parametrize(
    ("operator", "shape", "weights", "outputs", "kernel"),
    [
        ("MatMul", [9, 64], (64, 40), [9, 40], "cpu.narrow_matrix_multiply"),
        ("Conv", [1, 16, 10, 12], (24, 16, 3, 3), [1, 24, 8, 10], "cpu.narrow_convolution"),
    ],
)
def test_fp8_between_quantizations_is_one_group_that_gives_what_onnx_runtime_gives(
    operator, shape, weights, outputs, kernel
):
    model = fp8_model(operator, shape, weights, outputs)
    engine = engine_of(model)
    (product,) = [operation for operation in engine.plan.operations if "product" in operation.onnx_nodes]
    assert (product.kernel, product.precision) == (kernel, dryfit.DataType.FP8)
    assert len(product.layers) == 4
    x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    actual, expected = result(engine, x), onnxruntime_result(model, x)
    # Sums in another order: a result beside a tie may get the neighbouring code, an eighth away at most.
    apart = actual != expected
    assert apart.mean() <= 0.01
    np.testing.assert_allclose(actual[apart], expected[apart], rtol=0.13, atol=0.02 * 2.0**-8)


def test_fp4_weights_in_blocks_give_what_onnxs_reference_gives():
    generator = np.random.default_rng(5)
    codes = generator.choice(np.array([-6, -4, -3, -1.5, -0.5, 0, 0.5, 1, 2, 6], np.float32), (64, 48))
    scales = generator.uniform(0.1, 0.2, (4, 48)).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["real"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "real"], ["y"]),
    ]
    initializers = [narrow_initializer("w", TensorProto.FLOAT4E2M1, codes), numpy_helper.from_array(scales, "s")]
    model = model_of(nodes, initializers, [2, 64], [2, 48], opset=23)
    onnx.checker.check_model(model)
    engine = engine_of(model)
    assert [operation.kernel for operation in engine.plan.operations] == ["cpu.narrow_matrix_multiply"]
    x = generator.standard_normal((2, 64)).astype(np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(result(engine, x), expected, rtol=2e-5, atol=2e-5)


def dynamic_network(rows=5, depth=128, columns=160):
    """FP4 by FP4: activations quantized dynamically, scales of both sides FP8 with a global scale."""
    network, generator = dryfit.Network("dynamic"), np.random.default_rng(6)

    def constant(values):
        return network.add_constant(values.shape, values).get_output(0)

    x = network.add_input("x", dryfit.DataType.FLOAT, (rows, depth))
    outer = constant(np.array(0.002, np.float32))
    quantized = network.add_layer(DynamicQuantize(axis=1, block_size=16), [x, outer])
    scales = network.add_layer(Dequantize(), [quantized.outputs[1], outer]).outputs[0]
    real = network.add_layer(Dequantize(), [quantized.outputs[0], scales]).outputs[0]
    codes = generator.integers(0, 16, (columns, depth)).astype(np.uint8).view(ml_dtypes.float4_e2m1fn)
    factors = constant(generator.uniform(1, 400, (columns, depth // 16)).astype(ml_dtypes.float8_e4m3fn))
    wide = network.add_layer(Dequantize(), [factors, constant(np.array(0.001, np.float32))]).outputs[0]
    weights = network.add_layer(Dequantize(), [constant(codes), wide]).outputs[0]
    product = network.add_layer(MatrixMultiply(op1=MatrixOperation.TRANSPOSE), [real, weights])
    network.mark_output(product.outputs[0])
    return network


def test_dynamic_double_quantization_is_one_step_and_one_product_as_the_references_have_it():
    network = dynamic_network()
    engine = built(network)
    kernels = [operation.kernel for operation in engine.plan.operations]
    assert kernels == ["cpu.dynamic_quantization", "cpu.narrow_matrix_multiply"]
    product = engine.plan.operations[1]
    assert len(product.layers) == 5
    assert product.precision is dryfit.DataType.FP4
    assert product.weights["scales"].dtype == ml_dtypes.float8_e4m3fn
    x = np.random.default_rng(7).standard_normal((5, 128)).astype(np.float32)
    (expected,) = run_reference(network, {"x": x}).values()
    np.testing.assert_allclose(result(engine, x), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_a_dynamic_batch_leaves_dynamic_quantization_native():
    network = dynamic_network(rows=-1)
    builder = dryfit.Builder()
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (1, 128), (4, 128), (8, 128))
    config.add_optimization_profile(profile)
    config.default_device_type = dryfit.DeviceType.CPU
    engine = builder.build_engine(network, config)
    kernels = [operation.kernel for operation in engine.plan.operations]
    assert kernels == ["cpu.dynamic_quantization", "cpu.narrow_matrix_multiply"]
    context = engine.create_execution_context()
    for rows in (1, 8):
        x = np.random.default_rng(rows).standard_normal((rows, 128)).astype(np.float32)
        context.set_input_shape("x", x.shape)
        (actual,), (expected,) = context.run({"x": x}).values(), run_reference(network, {"x": x}).values()
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
