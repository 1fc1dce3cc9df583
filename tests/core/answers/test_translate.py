"""`dryfit.translate`: both ways, from models in memory."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.core.onnx.models import model, numbers

import dryfit


@pytest.fixture
def plain() -> onnx.ModelProto:
    parsed = model(
        "a = Conv(x, v) b = Relu(a) y = Conv(b, v)",
        inputs="float[1,4,6,6] x",
        outputs="float[1,4,6,6] y",
        weights={"v": numbers(4, 4, 1, 1)},
    )
    for node in parsed.graph.node:
        node.name = f"the_{node.output[0]}"
    return parsed


def test_a_model_is_translated_there_and_back(plain, tmp_path):
    (tmp_path / "ranges.txt").write_text("x: 6.35\na: 12.7\nb: 12.7\ny: 25.4\n")
    explicit = dryfit.translate(plain, tmp_path / "qdq.onnx", to="qdq", ranges=tmp_path / "ranges.txt", fail_on="lost")
    assert (explicit.summary.int8, explicit.summary.different) == (2, 0)
    assert [one.failed for one in explicit.conditions] == [False]
    operators = {node.op_type for node in onnx.load(tmp_path / "qdq.onnx").graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= operators
    implicit = dryfit.translate(tmp_path / "qdq.onnx", tmp_path / "out", to="implicit", samples=0)
    scales = {one.name: one.scale for one in implicit.tensors}
    assert (implicit.proof, scales["x"]) == (None, float(np.float32(6.35 / 127)))
    assert {one.file.parent for one in implicit.files} == {tmp_path / "out"}
    assert str(implicit).splitlines()[0] == implicit.summary_line()


def test_words_that_do_not_exist_are_refused(plain, tmp_path):
    with pytest.raises(dryfit.UnknownNameError, match="unequal-scales"):
        dryfit.translate(plain, tmp_path, to="implicit", unequal_scales="largets")
    with pytest.raises(dryfit.UnknownNameError, match="--to"):
        dryfit.translate(plain, tmp_path, to="explicit")
    with pytest.raises(dryfit.ConfigError, match="A translation to qdq requires scales"):
        dryfit.translate(plain, tmp_path / "qdq.onnx", to="qdq")
