"""`dryfit cache`: its answers, its exit codes, and what it refuses."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from tests.schemas import validate

from dryfit.answers.cache_answers import (
    FINDING_TITLES,
    LINE_WIDTH,
    CacheAnswer,
    CacheCheckAnswer,
    CacheDiffAnswer,
)
from dryfit.answers.conditions import CACHE_SUBJECTS, FailCondition, counted_outcomes
from dryfit.answers.json_data import json_schema
from dryfit.answers.options import ALGORITHMS
from dryfit.answers.written_caches import ConvertAnswer, MergeAnswer
from dryfit.cli.commands.cache import FORM_NAMES, merge
from dryfit.onnx.parser import network_from_onnx
from dryfit.quantization.cache_comparison import ConflictRule, FindingKind
from dryfit.quantization.cache_document import CacheDocument
from dryfit.quantization.cache_forms import FORMS
from dryfit.quantization.calibration_state import CalibrationState
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.quantization.histogram import Histogram
from dryfit.short_text import sparkline

DOCUMENT_SCHEMA = json_schema(CacheDocument, "dryfit calibration cache")
SCHEMA = json_schema(
    CacheAnswer | CacheDiffAnswer | CacheCheckAnswer | MergeAnswer | ConvertAnswer, "dryfit cache --json"
)
HEADER = "TRT-8600-EntropyCalibration2"


@pytest.fixture
def cache(tmp_path):
    """A function that writes a cache: `cache("a.cache", "x: 3f800000")`."""

    def written(name, *lines, header=HEADER):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in (header, *lines)))
        return path

    return written


def fits(answer, schema):
    """The answer fits its own schema, and of the whole only that one."""
    validate(answer, schema)
    validate(answer, SCHEMA)
    return answer


def test_the_words_of_the_commands_are_those_of_what_they_call():
    assert (*FORMS,) == FORM_NAMES
    assert [*FINDING_TITLES] == [*CACHE_SUBJECTS.texts][:-1] == [kind.value for kind in FindingKind]
    [rule] = [one for one in merge.params if one.name == "rule"]
    assert [*rule.type.choices] == [one.value for one in ConflictRule]
    assert {*ALGORITHMS.values()} == {one.name for one in CalibrationAlgoType}


# show ----------------------------------------------------------------------------------------------------------------


def test_show_tells_scale_range_and_origin(dryfit_command, cache):
    file = cache("a.cache", "image: 3f800000", "a b: c: 0")
    answer = fits(dryfit_command("cache", "show", file, "--json").json, CacheAnswer.schema())
    assert (answer["algorithm"], answer["tensorrt_version"]) == ("ENTROPY_CALIBRATION_2", "8.6.0")
    image, other = answer["tensors"]
    assert (image["scale"], image["range"], image["origin"], image["place"]) == (1, [-127, 127], "calibrated", "line 2")
    assert (other["name"], other["scale"], other["range"]) == ("a b: c", None, None)
    text = dryfit_command("cache", "show", file).out
    assert "-127 to 127" in text
    assert "2 tensors, 1 of them without a scale" in text


def test_show_takes_every_real_cache(dryfit_command, shared):
    for path in (shared / "calibration-caches").glob("trt*"):
        answer = fits(dryfit_command("cache", "show", path, "--json").json, CacheAnswer.schema())
        assert answer["algorithm"], path.name


@pytest.mark.parametrize("command", ["show", "diff", "merge", "convert", "check"])
def test_a_file_that_is_not_there_is_an_error_that_names_it(dryfit_command, command, tmp_path):
    more = {"diff": [tmp_path / "b"], "merge": ["-o", tmp_path / "c"], "convert": ["-o", tmp_path / "c"]}
    ended = dryfit_command("cache", command, tmp_path / "nowhere.cache", *more.get(command, []))
    assert ended.code == 2
    assert f"{tmp_path / 'nowhere.cache'}: The calibration cache cannot be read" in ended.err


def test_a_damaged_file_is_an_error_that_names_the_line(dryfit_command, cache):
    ended = dryfit_command("cache", "show", cache("a.cache", "x: 1", "y"))
    assert (ended.code, ended.out) == (2, "")
    assert "a.cache, line 3: Not an entry (found 'y'" in ended.err


# diff ----------------------------------------------------------------------------------------------------------------


def test_diff_sorts_by_ratio_and_fails_as_it_is_told(dryfit_command, cache):
    first = cache("a.cache", "a: 3f800000", "b: 3f800000", "c: 3f800000", "d: 0", "e: 1")
    second = cache("b.cache", "a: 3f800000", "b: 40000000", "c: 3e800000", "d: 1", "f: 1")
    answer = fits(dryfit_command("cache", "diff", first, second, "--json").json, CacheDiffAnswer.schema())
    assert [(one["name"], one["ratio"]) for one in answer["changed"]] == [("d", None), ("c", 4), ("b", 2)]
    assert (answer["equal"], answer["removed"], answer["added"]) == (1, ["e"], ["f"])
    assert dryfit_command("cache", "diff", first, second).code == 0
    failed = dryfit_command("cache", "diff", first, second, "--fail-on", "changed>3,removed")
    assert (failed.code, failed.err) == (1, "--fail-on removed: 1\n")
    assert dryfit_command("cache", "diff", first, first, "--fail-on", "ratio,changed,removed,added").code == 0


# merge ---------------------------------------------------------------------------------------------------------------


def test_merge_refuses_conflicts_unless_a_rule_is_stated(dryfit_command, cache, tmp_path):
    files = cache("a.cache", "a: 3f800000", "b: 0"), cache("b.cache", "a: 40000000", "b: 1", header="1")
    output = tmp_path / "merged.cache"
    ended = dryfit_command("cache", "merge", *files, "-o", output)
    assert ended.code == 2
    assert "'a': 1 in" in ended.err
    assert not output.exists()
    answer = dryfit_command("cache", "merge", *files, "-o", output, "--on-conflict", "widest", "--json").json
    assert [one["scale"] for one in fits(answer, MergeAnswer.schema())["conflicts"][0]["scales"]] == [1, 2]
    assert output.read_text() == f"{HEADER}\na: 40000000\nb: 1\n"
    told = dryfit_command("cache", "merge", *files, "-o", output, "--on-conflict", "first").err
    assert "the first one is used" in told
    assert "different first lines" in told


# convert -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "header"),
    [
        (["--tensorrt-version", "10.3"], "TRT-100300-EntropyCalibration2"),
        (["--algorithm", "minmax"], "TRT-8600-MinMaxCalibration"),
        (["--algorithm", "entropy", "--tensorrt-version", "4"], "1"),
        (["--algorithm", "legacy", "--cutoff", 1, "--quantile", "0.99999"], "0 3ff0000000000000 3fefffeb074a771d"),
    ],
)
def test_convert_writes_another_first_line_over_the_same_scales(dryfit_command, cache, tmp_path, options, header):
    file, output = cache("a.cache", "a b: c: 3f810204", "b: 1"), tmp_path / "b.cache"
    answer = dryfit_command("cache", "convert", file, "-o", output, *options, "--json").json
    assert fits(answer, ConvertAnswer.schema())["header"] == header
    assert output.read_text() == f"{header}\na b: c: 3f810204\nb: 1\n"


@pytest.mark.parametrize("form", FORM_NAMES)
def test_convert_there_and_back_gives_the_same_file(dryfit_command, shared, tmp_path, form):
    file = shared / "calibration-caches" / "trt100100-entropy2-resnet50.cache"
    assert dryfit_command("cache", "convert", file, "-o", tmp_path / "there", "--to", form).code == 0
    back = ["--to", "tensorrt", "--tensorrt-version", "10.1", "--algorithm", "entropy2"]
    assert dryfit_command("cache", "convert", tmp_path / "there", "-o", tmp_path / "back", *back).code == 0
    assert (tmp_path / "back").read_bytes() == file.read_bytes()


def test_convert_tells_what_a_form_leaves_out_and_what_it_made_up(dryfit_command, cache, tmp_path):
    file = cache("a.cache", "a: 1", "none: 0")
    ended = dryfit_command("cache", "convert", file, "-o", tmp_path / "ranges", "--to", "ranges")
    assert "1 without a scale are left out, for the form has none: 'none'" in ended.err
    ended = dryfit_command("cache", "convert", tmp_path / "ranges", "-o", tmp_path / "b", "--to", "tensorrt")
    assert (
        "The first line says entropy2, because FILE does not name an algorithm; use --algorithm to change it"
        in ended.err
    )
    assert (tmp_path / "b").read_text() == "TRT-100300-EntropyCalibration2\na: 1\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "ranges", "--algorithm", "minmax"], "Only the forms tensorrt and json"),
        (["--quantile", "0.5"], "require the legacy algorithm, not ENTROPY_CALIBRATION_2"),
        (["--algorithm", "legacy", "--cutoff", "1"], "regression cutoff and quantile"),
        (["--tensorrt-version", "8.12"], "Not a TensorRT version"),
        (["--form", "json"], "not valid JSON"),
    ],
)
def test_convert_refuses_what_the_result_cannot_hold(dryfit_command, cache, tmp_path, options, message):
    ended = dryfit_command("cache", "convert", cache("a.cache", "a: 1"), "-o", tmp_path / "b", *options)
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "b").exists()


def test_a_place_that_cannot_be_written_is_named(dryfit_command, cache, tmp_path):
    ended = dryfit_command("cache", "convert", cache("a.cache", "a: 1"), "-o", tmp_path / "no" / "b")
    assert ended.code == 2
    assert f"{tmp_path / 'no' / 'b'}: The file cannot be written" in ended.err


# check ---------------------------------------------------------------------------------------------------------------


def test_check_finds_everything_at_once(dryfit_command, cache, digits_model):
    known = [tensor.name for tensor in network_from_onnx(digits_model).tensors if tensor.dtype.is_floating_point][:1]
    lines = [f"{known[0]}: 1", "broken", f"{known[0]}: 2", "a: bf800000", "b: 7fc00000", "c: 0"]
    file = cache("a.cache", *lines, "(Unnamed Layer* 1) [Shuffle]_output: 1")
    ended = dryfit_command("cache", "check", file, digits_model, "--json", "--fail-on", "zero>1,foreign")
    answer = fits(ended.json, CacheCheckAnswer.schema())
    assert ended.code == 1
    summary = answer["summary"]
    assert summary.pop("missing") > 0
    counted = {"damaged", "duplicate", "negative", "nonfinite", "zero", "foreign", "unnamed"}
    assert summary == {**dict.fromkeys(counted, 1), "unknown": 3}
    assert [(one["condition"], one["failed"]) for one in answer["conditions"]] == [("zero>1", False), ("foreign", True)]
    text = dryfit_command("cache", "check", file, digits_model).out
    assert all(title in text for title in FINDING_TITLES.values())


def test_a_cache_of_every_tensor_has_nothing_wrong(dryfit_command, cache, digits_model):
    names = [tensor.name for tensor in network_from_onnx(digits_model).tensors if tensor.dtype.is_floating_point]
    file = cache("a.cache", *(f"{name}: 3f800000" for name in names))
    ended = dryfit_command("cache", "check", file, digits_model, "--fail-on", "findings")
    assert (ended.code, ended.out) == (0, f"{file}: {len(names)} tensors, no problems\n")


def test_a_file_that_tells_its_model_is_compared_with_it(dryfit_command, digits_model, tmp_path):
    names = [tensor.name for tensor in network_from_onnx(digits_model).tensors if tensor.dtype.is_floating_point]
    digest = f"sha256:{hashlib.sha256(digits_model.read_bytes()).hexdigest()}"
    tensors = [{"name": name, "scale": 1.0, "range": [-127.0, 127.0]} for name in names]
    for model, foreign in ((digest, 0), ("sha256:other", 1)):
        document = {"format": "dryfit calibration cache", "version": 1, "facts": {"model": model}, "tensors": tensors}
        (tmp_path / "a.json").write_text(json.dumps(document))
        answer = dryfit_command("cache", "check", tmp_path / "a.json", digits_model, "--json").json
        assert answer["summary"]["foreign"] == foreign


def test_calibrate_writes_dryfits_own_form_that_check_and_build_take(dryfit_command, digits_model, tmp_path):
    samples, output = tmp_path / "samples.npy", tmp_path / "digits.json"
    np.save(samples, np.random.default_rng(0).random((2, 1, 8, 8)).astype(np.float32))
    command = ("calibrate", digits_model, "--data", samples, "-o", output, "--threads", 1)
    assert dryfit_command(*command).code == 0
    validate(json.loads(output.read_bytes()), DOCUMENT_SCHEMA)
    shown = fits(dryfit_command("cache", "show", output, "--json").json, CacheAnswer.schema())
    assert shown["facts"]["calibrator"] == "entropy2"
    assert shown["tensors"][0]["statistics"]["count"] == 2 * 64
    assert dryfit_command("cache", "check", output, digits_model, "--fail-on", "findings").code == 0
    assert "already covers the model: nothing to do" in dryfit_command(*command, "--reuse").err
    options = ("--int8", "--calibration-cache", output, "--shape", "image=1x1x8x8", "--json")
    explained = dryfit_command("explain", digits_model, "--quantization", *options).json
    assert explained["summary"]["tensors_by_origin"].get("missing", 0) == 0


# Conditions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mising", "did you mean 'missing'"),
        ("missing>3%", "missing does not support the unit '%', allowed: none"),
        (",", "a condition is required; conditions are"),
        ("ratio", "unknown condition 'ratio'"),
    ],
)
def test_a_condition_that_would_never_fail_is_refused(dryfit_command, cache, text, message):
    ended = dryfit_command("cache", "check", cache("a.cache", "a: 1"), "--fail-on", text)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())


def test_a_condition_compares_with_its_limit():
    conditions = [FailCondition("a>=2", "a", ">=", 2), FailCondition("a", "a"), FailCondition("a<2", "a", "<", 2)]
    assert [one.failed for one in counted_outcomes(conditions, {"a": 2})] == [True, True, False]


def test_the_state_of_a_calibration_has_histograms_to_show(dryfit_command, cache, tmp_path):
    seen = Histogram("x")
    seen.update(np.float32([0, 0.25, 0.25, 0.75]), "sample")
    state = tmp_path / "kept.state"
    state.write_bytes(CalibrationState({"model": "any"}, ["sample"], {"x": seen}).to_bytes())
    path = cache("a.cache", "x: 3c010a14", "y: 3c010a14")
    shown = dryfit_command("cache", "show", path, "--state", state)
    rows = [line.split() for line in shown.out.splitlines()]
    assert ["tensor", "histogram", "scale", "range", "origin"] in rows
    answer = fits(
        json.loads(dryfit_command("cache", "show", path, "--state", state, "--json").out), CacheAnswer.schema()
    )
    x, y = (one["histogram"] for one in answer["tensors"])
    assert (len(x), sum(x), y) == (64, 3, [])
    assert sparkline(x, LINE_WIDTH) in shown.out
    assert "histogram" not in dryfit_command("cache", "show", path).out


@pytest.mark.parametrize("content", [None, b"no state"])
def test_a_state_that_cannot_be_read_is_an_error(dryfit_command, cache, tmp_path, content):
    state = tmp_path / "kept.state"
    if content is not None:
        state.write_bytes(content)
    shown = dryfit_command("cache", "show", cache("a.cache", "x: 3c010a14"), "--state", state)
    assert shown.code != 0
    assert "kept.state" in shown.err
