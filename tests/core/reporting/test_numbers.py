"""The parts of a report about INT8, arithmetic and Q/DQ: their numbers are those of the answers."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from tests.schemas import validate

import dryfit
from dryfit.builder.precision.chosen import PrecisionCause
from dryfit.errors import CalibrationError, ConfigError
from dryfit.network.data_types import DataType
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.network_ranges import sqnr_db
from dryfit.reporting.figures import Part
from dryfit.reporting.numerics import tensor_range, weight_ranges
from dryfit.reporting.parts.quantization import CAUSES
from dryfit.reporting.report import ReportAnswer

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")

DIGITS = "examples/digits/digits.onnx"
BOARD = {"platform": "agx-orin-64", "shape": {"image": (1, 1, 8, 8)}}


def part_of(answer: ReportAnswer, name: str) -> Part:
    """The part of this name."""
    return next(one for one in answer.parts if one.name == name)


def table_of(part: Part, *columns: str) -> list[dict[str, Any]]:
    """The rows of the first table that has these columns, by column."""
    found = next(one for one in part.blocks if set(columns) <= set(getattr(one, "columns", ())))
    return [dict(zip(found.columns, row, strict=True)) for row in found.cells()]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: Any) -> str:
    path = tmp_path_factory.mktemp("samples") / "images.npy"
    np.save(path, np.random.default_rng(0).random((3, 1, 8, 8), np.float32))
    return str(path)


@pytest.fixture(scope="module")
def digits(samples: str) -> Any:
    return dryfit.report(DIGITS, data=samples, edits=False, **BOARD)


@pytest.fixture(scope="module")
def stated(tmp_path_factory: Any) -> Any:
    """A product whose weights and input are quantized by Q/DQ."""
    network = dryfit.Network()
    x = network.add_input("x", DataType.FLOAT, (1, 4, 4, 4))
    scale = network.add_constant((), np.float32(0.5)).get_output(0)
    quantized = network.add_quantize(x, scale)
    real = network.add_dequantize(quantized.get_output(0), scale)
    convolution = network.add_convolution_nd(real.get_output(0), 2, (1, 1), np.ones((2, 4, 1, 1), np.float32))
    network.mark_output(convolution.get_output(0))
    return network


def test_the_answer_is_as_its_schema_promises(digits: Any) -> None:
    validate(digits.to_dict(), ReportAnswer.schema())


def test_ranges_are_those_of_the_calibration(digits: Any, samples: str) -> None:
    alone = dryfit.calibrate(DIGITS, samples, shape=BOARD["shape"])
    assert digits.numerics.calibration.samples == 3
    thresholds = {one.name: one.threshold for one in alone.tensors}
    ranges = {one["tensor"]: one for one in digits.to_dict()["numerics"]["tensors"]}
    # The engine has the scale as a binary32 number.
    assert {name: one["threshold"] for name, one in ranges.items()} == pytest.approx(thresholds, rel=1e-6)
    for row in table_of(part_of(digits, "int8"), "tensor", "threshold"):
        assert row["threshold"] == f"{ranges[row['tensor']]['threshold']:.6g}"


def test_the_tensors_that_lose_most_have_pictures(digits: Any) -> None:
    ratios = sorted((one.sqnr_db, one.tensor) for one in digits.numerics.tensors)
    pictures = [one for one in part_of(digits, "int8").figures if one.name.startswith("range-")]
    assert len(pictures) == 6
    for (ratio, name), picture in zip(ratios, pictures, strict=False):
        assert picture.description.startswith(name)
        assert f"SQNR {ratio:.1f} dB" in picture.title


def test_ratios_are_those_of_the_comparison(digits: Any) -> None:
    found = digits.to_dict()["numerics"]["comparison"]
    assert [one["name"] for one in found["sides"]] == ["fp32", "GPU"]
    output = next(one for one in found["tensors"] if one["is_output"])
    ratio = output["differences"]["fp32"]["sqnr_db"]
    assert f"{ratio:.1f} dB" in part_of(digits, "int8").finding
    by_side = {row["against"]: row for row in table_of(part_of(digits, "arithmetic"), "against", "compared")}
    for side, title in zip(found["sides"], ("FP32", "GPU"), strict=True):
        assert by_side[title]["compared"] == str(side["compared"])
        assert by_side[title]["differ"] == str(side["differing"])
        assert f"{side['differing']} of {side['compared']} tensors differ" in part_of(digits, "arithmetic").finding


def test_precisions_are_those_of_the_explanation(digits: Any) -> None:
    summary = digits.to_dict()["numerics"]["quantization"]["summary"]
    rows = table_of(part_of(digits, "int8"), "precision", "cause")
    counted: dict[str, int] = {}
    for row in rows:
        counted[row["precision"]] = counted.get(row["precision"], 0) + int(row["layers"])
    assert counted == {DataType[name].text: count for name, count in summary["layers_by_precision"].items()}


def test_each_cause_of_a_precision_has_its_words() -> None:
    assert set(CAUSES) == set(PrecisionCause)


def test_a_report_without_int8_has_no_such_parts() -> None:
    names = {one.name for one in dryfit.report(DIGITS, edits=False, **BOARD).parts}
    assert not names & {"int8", "arithmetic", "qdq"}


def test_without_samples_unknown_ranges_are_not_made_up() -> None:
    found = dryfit.report(DIGITS, precision="fp16,int8", edits=False, **BOARD)
    assert found.numerics.calibration is None
    assert found.numerics.tensors == ()
    assert "there are no histograms" in part_of(found, "int8").basis
    assert [one.name for one in part_of(found, "int8").figures] == ["channels"]


def test_assumed_scales_are_called_so() -> None:
    found = dryfit.report(DIGITS, precision="fp16,int8", assume_scales=True, against="cpu", edits=False, **BOARD)
    assert "scales of 15 tensors are assumed" in part_of(found, "int8").finding
    assert "assumed to have a scale" in part_of(found, "int8").basis
    assert found.numerics.comparison is None
    assert [one.partition(":")[0] for one in found.numerics.problems] == ["Comparison"]


def test_an_engine_is_compared_in_place_of_the_model(tmp_path: Any, samples: str) -> None:
    path = tmp_path / "digits.engine"
    network = dryfit.network_from_onnx(DIGITS)
    network.inputs[0].shape = BOARD["shape"]["image"]
    dryfit.Builder().build_engine(network, dryfit.BuilderConfig()).save(path)
    found = dryfit.report(DIGITS, engine=path, data=samples, limit=2, edits=False, **BOARD)
    alone = dryfit.compare(path, data=samples, limit=2)
    assert found.numerics.comparison.device == alone.device == "GPU"
    assert [one.differing for one in found.numerics.comparison.sides] == [one.differing for one in alone.sides]


def test_random_inputs_are_called_so() -> None:
    found = dryfit.report(DIGITS, against="cpu", edits=False, **BOARD)
    assert [one.name for one in found.numerics.comparison.sides] == ["fp32", "cpu"]
    assert "random inputs of seed 0" in part_of(found, "arithmetic").basis


def test_samples_that_do_not_fit_are_an_error(tmp_path: Any) -> None:
    path = tmp_path / "images.npy"
    np.save(path, np.zeros((2, 5), np.float32))
    with pytest.raises(CalibrationError):
        dryfit.report(DIGITS, data=str(path), edits=False, **BOARD)


def test_a_network_in_memory_cannot_be_calibrated(samples: str) -> None:
    with pytest.raises(ConfigError, match="calibration"):
        dryfit.report(dryfit.network_from_onnx(DIGITS), data=samples, edits=False, **BOARD)


def test_the_pages_of_two_runs_are_equal(digits: Any, samples: str) -> None:
    assert dryfit.report(DIGITS, data=samples, edits=False, **BOARD).to_html() == digits.to_html()


# Q/DQ -----------------------------------------------------------------------------------------------------------------


def test_each_quantization_has_its_outcome(stated: Any) -> None:
    found = dryfit.report(stated, device="GPU", edits=False)
    explained = dryfit.explain_quantization(stated, device="GPU")
    part = part_of(found, "qdq")
    details = {row[0]: row[4] for row in part.details[0].cells()}
    assert details == {one.name: one.outcome.value for one in explained.quantizations}
    linted = dryfit.lint(stated)
    assert found.numerics.lint.to_json() == linted.to_json()
    for row in table_of(part, "severity", "findings") if linted.findings else []:
        assert int(row["findings"]) == len(linted.findings_of(row["rule"]))


def test_a_model_with_scales_is_compared_with_its_definition(stated: Any) -> None:
    found = dryfit.report(stated, device="GPU", against="cpu", edits=False)
    assert "differ from the model with its Q/DQ" in part_of(found, "arithmetic").finding


def test_a_published_model_with_scales(shared: Any) -> None:
    model = shared / "models" / "mnist_resnet_qat_qdq.onnx"
    found = dryfit.report(model, device="GPU", edits=False, shape={"input": (1, 1, 28, 28)})
    summary = found.numerics.quantization.summary
    alone = summary.quantizations_by_outcome["alone"]
    assert part_of(found, "qdq").finding.startswith(f"{alone} of {summary.quantizations} Q/DQ layers remain")
    assert all(one.is_stated for one in found.numerics.weights)


# Ranges and weights ---------------------------------------------------------------------------------------------------


def test_the_loss_of_a_range_is_that_of_the_histogram() -> None:
    seen = Histogram("x")
    seen.update(np.random.default_rng(1).normal(size=10000).astype(np.float32), "sample")
    found = tensor_range("x", seen, 2.0, "calibrated")
    assert found.sqnr_db == sqnr_db(seen, 2.0)
    assert sum(found.counts) == found.values - found.zeros == 10000
    assert found.losses_db[-1] == sqnr_db(seen, found.thresholds[-1])
    assert found.best_sqnr_db == max(found.losses_db)
    assert found.best_threshold == found.thresholds[int(np.argmax(found.losses_db))]


def test_of_a_tensor_of_zeros_no_loss_is_known() -> None:
    seen = Histogram("x")
    seen.update(np.zeros(8, np.float32), "sample")
    found = tensor_range("x", seen, None, "every value is zero")
    assert (found.sqnr_db, found.saturated, found.best_threshold, found.thresholds) == (None, None, None, [])
    again = attrs.evolve(found, threshold=1.0)
    assert again.sqnr_db is None


def test_weights_have_a_range_for_each_channel() -> None:
    network = dryfit.Network()
    x = network.add_input("x", DataType.FLOAT, (1, 2, 4, 4))
    kernel = np.float32([[1, -3], [0, 0], [0.5, 0.25]]).reshape(3, 2, 1, 1)
    layer = network.add_convolution_nd(x, 3, (1, 1), kernel)
    network.mark_output(layer.get_output(0))
    (found,) = weight_ranges(network)
    assert found.magnitudes == [3.0, 0.0, 0.5]
    assert (found.smallest, found.largest, found.spread) == (0.5, 3.0, 6.0)
