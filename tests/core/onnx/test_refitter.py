"""Refits from ONNX models: each layer of the engine gets the weights of the model's layer of its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.core.builder.refittable_networks import built
from tests.core.onnx.models import model, numbers, run_runtime

from dryfit.builder.config.builder_config import BuilderFlag
from dryfit.builder.refit.refitter import Refitter
from dryfit.engine.engine import Engine
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.network import Network
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.refitter import OnnxParserRefitter, different_layers


def trained(
    seed: int, *, stride: int = 1, high: float = 6.0, kernel: tuple[int, ...] = (4, 3, 3, 3)
) -> onnx.ModelProto:
    """Convolution, batch normalization, clip, average, product with a transposed matrix, sum."""
    return model(
        f"""c = Conv<kernel_shape=[3, 3], strides=[{stride}, {stride}], pads=[1, 1, 1, 1]>(x, w, b)
            n = BatchNormalization(c, scale, shift, mean, variance)
            r = Clip(n, low, high)
            p = GlobalAveragePool(r)
            f = Flatten(p)
            y = Gemm<transB=1>(f, matrix, bias)""",
        inputs="float[1,3,8,8] x",
        outputs="float[1,5] y",
        weights={
            "w": numbers(4, 3, 3, 3, seed=seed),
            "b": numbers(4, seed=seed + 1),
            "scale": np.abs(numbers(4, seed=seed + 2)) + 0.5,
            "shift": numbers(4, seed=seed + 3),
            "mean": numbers(4, seed=seed + 4),
            "variance": np.abs(numbers(4, seed=seed + 5)) + 0.5,
            "low": np.float32(0),
            "high": np.float32(high),
            "matrix": numbers(5, 4, seed=seed + 6),
            "bias": numbers(5, seed=seed + 7),
        },
    )


def run(engine: Engine) -> np.ndarray:
    return engine.create_execution_context(1).run({"x": numbers(1, 3, 8, 8, seed=99)})["y"]


class Logger:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, severity: int, text: str) -> None:
        self.lines.append(f"{severity} {text}")


@pytest.mark.parametrize("flags", [(), (BuilderFlag.STRIP_PLAN,)])
def test_an_engine_computes_what_the_model_of_its_new_weights_computes(flags: tuple[BuilderFlag, ...], tmp_path: Path):
    engine = built(network_from_onnx(trained(1)), BuilderFlag.REFIT, *flags)
    onnx.save(trained(20), tmp_path / "new.onnx")
    refitter = Refitter(engine)
    assert OnnxParserRefitter(refitter).refit_from_file(tmp_path / "new.onnx")
    refitter.refit_cuda_engine()
    (expected,) = run_runtime(trained(20), {"x": numbers(1, 3, 8, 8, seed=99)})
    np.testing.assert_allclose(run(engine), expected, rtol=1e-4, atol=1e-5)
    fresh = built(network_from_onnx(trained(20)), BuilderFlag.REFIT)
    assert run(engine).tobytes() == run(fresh).tobytes()
    if not flags:
        assert engine.serialize() == fresh.serialize()


def test_weights_outside_of_the_model_file_are_found(tmp_path: Path):
    engine = built(network_from_onnx(trained(1)), BuilderFlag.REFIT)
    onnx.save(trained(20), tmp_path / "new.onnx", save_as_external_data=True, size_threshold=0)
    data = (tmp_path / "new.onnx").read_bytes()
    refitter = Refitter(engine)
    assert OnnxParserRefitter(refitter).refit_from_bytes(data, tmp_path / "new.onnx")
    refitter.refit_cuda_engine()
    assert run(engine).tobytes() == run(built(network_from_onnx(trained(20)))).tobytes()


def test_layers_that_the_user_added_keep_their_weights():
    def network(seed: int):
        network = network_from_onnx(trained(seed))
        y = network.outputs[0]
        network.unmark_output(y)
        network.rename_tensor(y, "before")
        relu = network.add_activation(y, ActivationType.RELU)
        network.mark_output(relu.get_output(0))
        network.rename_tensor(relu.get_output(0), "y")
        return network

    engine = built(network(1), BuilderFlag.REFIT)
    refitter = Refitter(engine)
    assert OnnxParserRefitter(refitter).refit_from_bytes(trained(20).SerializeToString())
    refitter.refit_cuda_engine()
    assert run(engine).tobytes() == run(built(network(20))).tobytes()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (trained(20, stride=2), "another `stride_nd`, which cannot be exchanged (found (2, 2); allowed: (1, 1))"),
        (trained(20, high=4.0), "found 4.0; allowed: 6.0"),
        (model("y = Relu(x)", inputs="float[1,5] x", outputs="float[1,5] y"), "layer is of kind fully_connected"),
        (model("z = Relu(x)", inputs="float[1,5] x", outputs="float[1,5] z"), "which has no layer with this name"),
        (model("y = Nonsense(x)", inputs="float[1] x", outputs="float[1] y"), "Nonsense"),
    ],
)
def test_another_model_is_refused_with_all_reasons_and_nothing_is_taken(other: onnx.ModelProto, words: str):
    refitter = Refitter(built(network_from_onnx(trained(1)), BuilderFlag.REFIT))
    logger = Logger()
    parser = OnnxParserRefitter(refitter, logger)
    assert not parser.refit_from_bytes(other.SerializeToString())
    reasons = [parser.get_error(index).desc() for index in range(parser.num_errors)]
    assert any(words in reason for reason in reasons)
    assert len(logger.lines) == parser.num_errors
    name = refitter.get_all_weights()[0]
    assert not refitter.unset_named_weights(name)
    parser.clear_errors()
    assert parser.num_errors == 0


def test_reasons_have_the_code_of_tensorrt():
    parser = OnnxParserRefitter(Refitter(built(network_from_onnx(trained(1)), BuilderFlag.REFIT)))
    assert not parser.refit_from_bytes(trained(20, stride=2).SerializeToString())
    assert parser.get_error(0).code() is ErrorCode.REFIT_FAILED
    parser.clear_errors()
    assert not parser.refit_from_bytes(b"no model")
    assert parser.get_error(0).code() is ErrorCode.MODEL_DESERIALIZE_FAILED


def test_weights_that_are_not_marked_have_to_be_as_they_were():
    network = network_from_onnx(trained(1))
    network.mark_weights_refittable("w")
    engine = built(network, BuilderFlag.REFIT_INDIVIDUAL)
    parser = OnnxParserRefitter(Refitter(engine))
    assert not parser.refit_from_bytes(trained(20).SerializeToString())
    assert "BIAS does not match the engine and cannot be refitted" in parser.get_error(0).desc()
    other = trained(1)
    other.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(numbers(4, 3, 3, 3, seed=5), "w"))
    refitter = Refitter(engine)
    assert OnnxParserRefitter(refitter).refit_from_bytes(other.SerializeToString())
    refitter.refit_cuda_engine()
    assert run(engine).tobytes() == run(built(network_from_onnx(other))).tobytes()


def test_arrays_that_are_no_weights_of_a_layer_have_to_be_as_they_were():
    def network(power: float):
        network = Network("powers")
        x = network.add_input("x", DataType.FLOAT, (1, 2, 2, 2))
        layer = network.add_scale(x, ScaleMode.CHANNEL, None, None, np.full(2, power, np.float32))
        network.rename_layer(layer, "scale")
        return network

    assert list(different_layers(network(2), network(2))) == []
    (reason,) = different_layers(network(2), network(3))
    assert "another `power`" in reason
