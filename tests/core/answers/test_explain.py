"""`dryfit.explain` and `dryfit.apply_edits`: reasons and edits as fields, for files, models in memory and networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import dryfit
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.onnx.editing.equality import SEEDS

OPTIONS: Any = {"device": "DLA", "shape": {"image": (1, 1, 8, 8)}}


def test_each_layer_that_leaves_has_its_rules_and_the_edits_that_may_cure_them(digits_model: Path) -> None:
    answer = dryfit.explain(digits_model, **OPTIONS)
    layers = {layer.name: layer for layer in answer.layers}
    (violation,) = layers["elu2"].violations
    assert (violation.rule, violation.actual) == ("dla.activation.type", "ELU")
    assert {(cause.rule, name) for cause in answer.causes for name in cause.layers} == {
        (one.rule, layer.name) for layer in answer.layers for one in layer.violations
    }
    (cascade,) = (edit for edit in answer.edits if edit.text == "average-pool-cascade")
    assert cascade.places == ["average"]
    assert cascade.saved.refused_layers == cascade.before.refused_layers - cascade.cost.refused_layers > 0
    assert "4 of 14 layers do not run on DLA" in repr(answer)


def test_a_model_in_memory_has_the_answer_of_its_file(digits_model: Path) -> None:
    of_file, of_model = (dryfit.explain(one, **OPTIONS).to_dict() for one in (digits_model, onnx.load(digits_model)))
    del of_file["model"], of_model["model"]
    assert of_model == of_file


def test_a_network_has_everything_but_edits_and_stays_as_it_is(digits_model: Path) -> None:
    network = dryfit.network_from_onnx(digits_model)
    of_file = dryfit.explain(digits_model, **OPTIONS).to_dict()
    answer = dryfit.explain(network, **OPTIONS)
    assert (answer.edits, answer.together, answer.unmeasured_edits) == ([], None, [])
    found = answer.to_dict()
    for name in ("model", "edits", "together", "unmeasured_edits"):
        del found[name], of_file[name]
    assert found == of_file
    assert network.inputs[0].shape[0] == -1
    with pytest.raises(ConfigError, match="An edit requires an ONNX model"):
        dryfit.apply_edits(network, "gemm-convolution", **OPTIONS)


def test_a_config_measures_edits_too_and_stays_as_it_is(digits_model: Path, tmp_path: Path) -> None:
    model = onnx.load(digits_model)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    path = tmp_path / "fixed.onnx"
    path.write_bytes(model.SerializeToString())
    config = dryfit.BuilderConfig()
    config.default_device_type = "DLA"
    config.set_flag(dryfit.BuilderFlag.FP16)
    config.allow_fallback("GPU")
    before = config.settings()
    answer = dryfit.explain(path, config=config)
    by_options = dryfit.explain(path, device="DLA")
    assert answer.edits == by_options.edits
    assert answer.layers == by_options.layers
    assert config.settings() == before
    assert config.progress_monitor is None


def test_one_layer_and_a_name_that_does_not_exist(digits_model: Path) -> None:
    answer = dryfit.explain(digits_model, "elu2", edits=False, **OPTIONS)
    assert [layer.name for layer in answer.layers] == ["elu2"]
    assert (answer.summary.layers, answer.summary.layers_leaving) == (1, 1)
    with pytest.raises(UnknownNameError, match="Did you mean 'elu2'"):
        dryfit.explain(digits_model, "elu", **OPTIONS)


def test_edits_are_applied_proved_and_measured_in_memory(digits_model: Path, tmp_path: Path) -> None:
    source = onnx.load(digits_model)
    bytes_before = source.SerializeToString()
    answer = dryfit.apply_edits(source, ["average-pool-cascade", "gemm-convolution"], **OPTIONS)
    assert source.SerializeToString() == bytes_before
    assert [edit.id for edit in answer.edits] == ["average-pool-cascade", "gemm-convolution"]
    assert answer.output is None
    assert answer.proof.seeds == SEEDS
    assert answer.proof.largest_difference <= answer.proof.tolerance
    assert answer.after.refused_layers < answer.before.refused_layers
    assert len(dryfit.explain(answer.edited, **OPTIONS).causes) < len(dryfit.explain(source, **OPTIONS).causes)
    output = tmp_path / "new.onnx"
    written = dryfit.apply_edits(source, "average-pool-cascade,gemm-convolution", output, **OPTIONS)
    assert output.read_bytes() == written.edited.SerializeToString() == answer.edited.SerializeToString()
    assert written.output == str(output)
    assert f"Written to {output}" in str(written)
    with pytest.raises(ConfigError, match="The file already exists"):
        dryfit.apply_edits(source, "gemm-convolution", output, **OPTIONS)
