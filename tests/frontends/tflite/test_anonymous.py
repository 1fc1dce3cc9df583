"""A report about a TFLite model without its names; board kits need ONNX and say so."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontends.tflite.whole_models import keyword_spotting
from tests.tflite_models import TfliteModel

import dryfit
from dryfit.answers.asked import import_model
from dryfit.errors import ConfigError
from dryfit_tflite import IMPORTER

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install dryfit[dev]")

WORD = "zebra"


def secret_model():
    """Two sums whose every name is secret; some names are shorter than a number, and two are equal."""
    model = TfliteModel(f"{WORD} description")
    model.graph.name = f"{WORD} graph".encode()
    x = model.input(f"{WORD}/input", (1, 4), "int8", scale=0.5)
    inner = model.tensor("z", (1, 4), "int8", scale=0.5)
    y = model.tensor(f"{WORD}/result of a long name", (1, 4), "int8", scale=0.5)
    other = model.constant(f"{WORD}/constant", np.ones((1, 4), np.int8), scale=0.5)
    model.operator("ADD", [x, other], [inner], "AddOptions")
    model.operator("MUL", [inner, inner], [y], "MulOptions")
    entry = model.schema.MetadataT()
    entry.name, entry.buffer = f"{WORD} metadata".encode(), 0
    model.model.metadata = [entry]
    return model.to_bytes([y])


def tensors_of(data):
    network = import_model(data).network
    return [tensor for layer in network.layers for tensor in (*layer.inputs, *layer.outputs) if tensor is not None]


def test_a_file_keeps_its_operators_and_loses_its_names():
    data = secret_model()
    renamed = IMPORTER.without_names(data)
    assert len(renamed) == len(data)
    before, after = tensors_of(data), tensors_of(renamed)
    assert [(one.shape, one.dtype) for one in before] == [(one.shape, one.dtype) for one in after]
    assert any(WORD in one.name for one in before)
    assert not any(WORD in one.name for one in after)
    assert WORD not in import_model(renamed).network.name
    assert f"{WORD}/".encode() not in renamed
    assert f"{WORD} description".encode() not in renamed


def test_a_report_has_no_name_of_the_model():
    data, _ = keyword_spotting(width=8)
    options = {"platform": "orin-nx-16", "edits": False}
    named, found = (dryfit.report(data, anonymous=one, **options) for one in (False, True))
    # layer_0 and layer_1 are also words of the charts.
    names = {f"layer_{number}" for number in range(2, 15)} & {tensor.name for tensor in tensors_of(data)}
    assert len(names) > 5
    assert not [name for name in names if name in found.to_html()]
    for one, other in zip(named.facts.check.layers, found.facts.check.layers, strict=True):
        assert (one.kind, one.device, one.precision) == (other.kind, other.device, other.precision)


def test_a_shape_is_given_by_the_name_of_the_file():
    data, shape = keyword_spotting(width=8)
    found = dryfit.report(data, platform="orin-nx-16", edits=False, anonymous=True, shape={"input": shape})
    assert "t0" in found.to_html()


@pytest.mark.parametrize("anonymously", [False, True])
def test_a_kit_of_a_tflite_model_is_refused(anonymously, tmp_path):
    path = tmp_path / "words.tflite"
    path.write_bytes(keyword_spotting(width=8)[0])
    with pytest.raises(ConfigError, match="A kit needs ONNX models") as caught:
        dryfit.board_pack(path, platform="orin-nx-16", output=tmp_path / "kit.zip", anonymously=anonymously)
    assert caught.value.found == "a TFLite model"
