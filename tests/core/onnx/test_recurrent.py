"""RNN, GRU and LSTM: the same as ONNX Runtime computes, as loops and unrolled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dryfit
from dryfit.onnx.problems import ModelRefusedError
from dryfit.reference.executor import run_reference

STEPS, BATCH, SIZE, HIDDEN = 5, 3, 4, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OPTIONAL = {
    "B": lambda gates, directions: (directions, 2 * gates * HIDDEN),
    "lengths": lambda gates, directions: (BATCH,),
    "h": lambda gates, directions: (directions, BATCH, HIDDEN),
    "c": lambda gates, directions: (directions, BATCH, HIDDEN),
    "P": lambda gates, directions: (directions, 3 * HIDDEN),
}
"""Names of the inputs behind the weights, with their shapes."""


def recurrent(op: str, given: str = "B", *, steps: Any = STEPS, opset: int = 14, **attributes: Any) -> onnx.ModelProto:
    """A model of one node; `given` are the optional inputs that it has, of which the lengths are an input of the model.

    All others are weights, the same for the same names.
    """
    random = np.random.default_rng(7)
    gates, directions = GATES[op], 2 if attributes.get("direction") == "bidirectional" else 1
    shapes = {"W": (directions, gates * HIDDEN, SIZE), "R": (directions, gates * HIDDEN, HIDDEN)}
    shapes |= {name: OPTIONAL[name](gates, directions) for name in given.split() if name != "lengths"}
    names = ["X", "W", "R", *(name if name in given.split() else "" for name in OPTIONAL)]
    while not names[-1]:
        names.pop()
    outputs = ["Y", "Y_h", "Y_c"][: 3 if op == "LSTM" else 2]
    node = helper.make_node(op, names, outputs, name="cell", hidden_size=HIDDEN, **attributes)
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, [steps, BATCH, SIZE])]
    if "lengths" in given:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [BATCH]))
    weights = {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    graph = helper.make_graph(
        [node],
        "one cell",
        inputs,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def feeds(model: onnx.ModelProto, steps: int = STEPS) -> dict[str, np.ndarray]:
    """Values for the inputs of a model."""
    values = {"X": np.random.default_rng(8).normal(size=(steps, BATCH, SIZE)).astype(np.float32)}
    if len(model.graph.input) > 1:
        values["lengths"] = np.array([steps, 2, 3], np.int32)
    return values


def assert_as_onnx_runtime(model: onnx.ModelProto, found: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> None:
    session = pytest.importorskip("onnxruntime").InferenceSession(model.SerializeToString())
    expected = dict(zip([one.name for one in session.get_outputs()], session.run(None, given), strict=True))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6, err_msg=name)


CASES = [
    *(
        (op, given, {"direction": direction, **more})
        for op in GATES
        for direction in ("forward", "reverse", "bidirectional")
        for given, more in (("B", {}), ("B lengths h", {}), ("", {"clip": 0.3}))
    ),
    ("GRU", "B", {"linear_before_reset": 1}),
    ("GRU", "B lengths", {"linear_before_reset": 1, "direction": "bidirectional", "clip": 0.5}),
    ("GRU", "", {"linear_before_reset": 1}),
    ("LSTM", "B h c P", {}),
    ("LSTM", "B lengths h c P", {"direction": "bidirectional", "clip": 0.2}),
    ("LSTM", "B", {"input_forget": 1}),
    (
        "LSTM",
        "B",
        {
            "activations": ["HardSigmoid", "LeakyRelu", "Softsign"],
            "activation_alpha": [0.3, 0.05],
            "activation_beta": [0.4],
        },
    ),
    (
        "LSTM",
        "B",
        {
            "activations": ["Affine", "ScaledTanh", "Elu"],
            "activation_alpha": [0.3, 0.5, 0.7],
            "activation_beta": [0.4, 0.6],
        },
    ),
    ("GRU", "B", {"activations": ["Sigmoid", "ThresholdedRelu"], "activation_alpha": [0.1]}),
    ("RNN", "B", {"activations": ["Softplus"]}),
    ("RNN", "B", {"activations": ["Relu", "Tanh"], "direction": "bidirectional"}),
    ("LSTM", "B", {"opset": 7}),
]


@pytest.mark.parametrize(("op", "given", "more"), CASES)
def test_a_cell_computes_what_onnx_runtime_does(op: str, given: str, more: dict[str, Any]) -> None:
    model = recurrent(op, given, **more)
    values = feeds(model)
    assert_as_onnx_runtime(model, run_reference(dryfit.network_from_onnx(model), values), values)


@pytest.mark.parametrize("op", GATES)
def test_engines_run_short_sequences_unrolled_and_long_ones_as_loops(op: str) -> None:
    config = dryfit.BuilderConfig()
    config.default_device_type = "CPU"
    kinds = []
    for steps in (STEPS, 80):
        model = recurrent(op, "B h", steps=steps, direction="bidirectional")
        engine = dryfit.Builder().build_engine(dryfit.network_from_onnx(model), config)
        values = feeds(model, steps)
        assert_as_onnx_runtime(model, engine.create_execution_context().run(values), values)
        kinds.append({layer.kind for layer in engine.plan.network.layers})
    assert ["loop" in some for some in kinds] == [False, True]


def test_the_number_of_steps_may_be_dynamic() -> None:
    model = recurrent("LSTM", "B lengths", steps="T")
    network = dryfit.network_from_onnx(model)
    for steps in (3, 9):
        values = feeds(model, steps)
        assert_as_onnx_runtime(model, run_reference(network, values), values)


def test_lengths_of_the_whole_sequence_need_no_masks() -> None:
    model = recurrent("GRU", "B lengths", direction="reverse")
    del model.graph.input[1]
    model.graph.initializer.append(numpy_helper.from_array(np.full(BATCH, STEPS, np.int32), "lengths"))
    network = dryfit.network_from_onnx(model)
    (loop,) = [layer for layer in network.layers if layer.kind == "loop"]
    assert not {"select", "reverse_sequence"} & {layer.kind for layer in (*network.layers, *loop.body.layers)}
    values = {"X": feeds(model)["X"]}
    assert_as_onnx_runtime(model, run_reference(network, values), values)


@pytest.mark.parametrize(
    ("op", "more", "message"),
    [
        ("RNN", {"activations": ["Sine"]}, r"These activations are not supported \(found Sine; allowed: 1 of affine"),
        ("LSTM", {"activations": ["Sigmoid"]}, r"found Sigmoid; allowed: 3 of affine"),
        ("GRU", {"direction": "sideways"}, r"'direction' is not supported \(found sideways; allowed: forward, reverse"),
    ],
)
def test_what_a_cell_cannot_mean_is_refused(op: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelRefusedError, match=f"node 'cell' \\({op}\\).*{message}"):
        dryfit.network_from_onnx(recurrent(op, **more))


def test_weights_of_another_number_of_directions_are_refused() -> None:
    model = recurrent("LSTM")
    model.graph.node[0].attribute.append(helper.make_attribute("direction", "bidirectional"))
    with pytest.raises(ModelRefusedError, match=r"found W \(1, 24, 4\) and R \(1, 24, 6\); allowed: \(2, 4 \* hidden"):
        dryfit.network_from_onnx(model)


def test_unrolled_steps_have_one_array_of_weights_in_memory_and_in_the_file(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    model = recurrent("RNN", "")
    size = 64
    weights = {"W": (1, size, SIZE), "R": (1, size, size)}
    del model.graph.initializer[:]
    for name, shape in weights.items():
        values = random.normal(0, 0.1, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    model.graph.node[0].attribute[0].i = size
    config = dryfit.BuilderConfig()
    config.default_device_type = "CPU"
    dryfit.Builder().build_engine(dryfit.network_from_onnx(model), config).save(tmp_path / "unrolled.engine")
    engine = dryfit.Engine.load(tmp_path / "unrolled.engine")
    steps = [one.weights for one in engine.plan.operations if one.kernel == "cpu.matrix_multiply"]
    large = [array for arrays in steps for array in arrays.values() if array.nbytes >= 4 * size * size]
    assert len(large) >= STEPS - 1  # the first step multiplies zeros
    assert len({array.ctypes.data for array in large}) == 1
    values = feeds(model)
    assert_as_onnx_runtime(model, engine.create_execution_context().run(values), values)
