"""What a kit contains: command lines by version, options, models without names and weights, and probes."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import dryfit
from dryfit.answers.anonymous_weights import without_weights
from dryfit.answers.board.probes import MOST_ACCEPTED, probe_networks
from dryfit.board.kit import on_board
from dryfit.board.kit.archive import Archive
from dryfit.board.kit.manifest import KitBuild
from dryfit.board.kit.probes import candidates, network_of
from dryfit.errors import ConfigError, UnknownNameError

SHAPE = {"shape": {"image": (1, 1, 8, 8)}}


def secret_model() -> onnx.ModelProto:
    """A small network whose names and weights nobody may see."""
    generator = np.random.default_rng(3)
    stored = {
        "secret_w": generator.normal(0.5, 2.0, (6, 3, 3, 3)).astype(np.float32),
        "secret_b": np.array([1, 2, 3, 4, 5, 6], np.float32),
        "scale": np.array(0.25, np.float32),
        "zero": np.array(0, np.int8),
        "shape": np.array([1, 6, 4, 9], np.int64),
    }
    nodes = [
        helper.make_node("Conv", ["secret_x", "secret_w", "secret_b"], ["secret_a"], name="secret_conv"),
        helper.make_node("QuantizeLinear", ["secret_a", "scale", "zero"], ["q"], name="secret_q"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], name="secret_d"),
        helper.make_node("Reshape", ["d", "shape"], ["secret_y"], name="secret_reshape"),
    ]
    x = helper.make_tensor_value_info("secret_x", 1, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("secret_y", 1, [1, 6, 4, 9])
    constants = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "secret", [x], [y], constants, doc_string="secret")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="secret")


def build_of(path: Path) -> KitBuild:
    with Archive.open(path) as kit:
        return kit.manifest.builds[0]


# Lines and options ----------------------------------------------------------------------------------------------------


def test_a_kit_has_a_command_line_for_each_group_of_versions(tmp_path: Path, digits_model: Path) -> None:
    dryfit.board_pack(digits_model, output=tmp_path / "x.zip", platform="xavier-nx", **SHAPE)
    build = build_of(tmp_path / "x.zip")
    assert [(tuple(one.since), one.until and tuple(one.until)) for one in build.lines] == [((8, 0), (11,))]
    dryfit.board_pack(digits_model, output=tmp_path / "o.zip", platform="orin-nx-16", fallback="none", **SHAPE)
    words = build_of(tmp_path / "o.zip").lines[0].arguments
    assert {"--onnx=models/digits.onnx", "--fp16", "--useDLACore=0"} <= set(words)
    assert "--allowGPUFallback" not in words
    assert not {"--skipInference", "--buildOnly"} & set(words)


def test_scales_travel_with_the_kit(tmp_path: Path, digits_model: Path) -> None:
    cache = tmp_path / "my.cache"
    cache.write_text(f"TRT-8502-EntropyCalibration2\nimage: {struct.pack('>f', 0.5).hex()}\n")
    path = tmp_path / "kit.zip"
    dryfit.board_pack(
        digits_model, output=path, platform="orin-nx-16", precision="fp16,int8", calibration_cache=cache, **SHAPE
    )
    build = build_of(path)
    assert "--calib=scales/digits.cache" in build.lines[-1].arguments
    assert build.options["calibration_cache"] == "scales/digits.cache"
    with Archive.open(path) as kit:
        assert b"image: 3f000000" in kit.contents("scales/digits.cache")


def test_invented_scales_are_said(tmp_path: Path, digits_model: Path) -> None:
    answer = dryfit.board_pack(
        digits_model, output=tmp_path / "k.zip", platform="orin-nx-16", precision="int8", **SHAPE
    )
    assert answer.notes == ["digits has no scales: trtexec invents ranges, so outputs have no meaning"]


def test_the_same_kit_has_the_same_bytes(tmp_path: Path, digits_model: Path) -> None:
    for name in ("a.zip", "b.zip"):
        dryfit.board_pack(digits_model, output=tmp_path / name, platform="orin-nx-16", **SHAPE)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_the_script_of_a_kit_can_be_run_and_the_readme_says_what_is_in_the_results(
    tmp_path: Path, digits_model: Path
) -> None:
    answer = dryfit.board_pack(digits_model, output=tmp_path / "k.zip", platform="orin-nx-16", **SHAPE)
    with zipfile.ZipFile(tmp_path / "k.zip") as kit:
        assert kit.getinfo("dryfit-kit/run.sh").external_attr >> 16 & 0o111
        readme = kit.read("dryfit-kit/README.md").decode()
    assert all(line in readme for line in answer.contents)
    assert "--kit kit.zip" in readme
    assert f"{answer.seconds:.1f}" == f"{5 + 0.3 * answer.builds[0].layers:.1f}"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ConfigError, "A kit requires a board"),
        ({"platform": "orin-nano"}, ConfigError, "has no DLA"),
        ({"platform": "orin-nx-17"}, UnknownNameError, "orin-nx-16"),
        ({"platform": "orin-nx-16", "device": "GPU"}, ConfigError, "A kit is for the DLA"),
        ({"platform": "orin-nx-16", "placement": {"conv1": "GPU"}}, ConfigError, "--layer-device-types"),
        ({"platform": "orin-nx-16", "probes": "some"}, UnknownNameError, "inferred"),
    ],
)
def test_what_a_kit_cannot_have_is_refused(
    arguments: Any, error: type[Exception], message: str, tmp_path: Path, digits_model: Path
) -> None:
    with pytest.raises(error, match=message):
        dryfit.board_pack(digits_model, output=tmp_path / "k.zip", **{**SHAPE, **arguments})
    assert not (tmp_path / "k.zip").exists()


def test_an_empty_kit_and_a_folder_that_is_missing_are_refused(tmp_path: Path, digits_model: Path) -> None:
    with pytest.raises(ConfigError, match="must have models or probes"):
        dryfit.board_pack((), output=tmp_path / "k.zip", platform="orin-nx-16")
    with pytest.raises(ConfigError, match="The kit cannot be written"):
        dryfit.board_pack(digits_model, output=tmp_path / "no" / "k.zip", platform="orin-nx-16", **SHAPE)


# Privacy --------------------------------------------------------------------------------------------------------------


def test_an_anonymous_kit_has_no_name_and_no_weight_of_the_model(tmp_path: Path) -> None:
    model = secret_model()
    path = tmp_path / "kit.zip"
    answer = dryfit.board_pack(model, output=path, platform="orin-nx-16", anonymously=True)
    assert answer.is_anonymous
    with zipfile.ZipFile(path) as kit:
        contents = {name: kit.read(name) for name in kit.namelist()}
    assert not [name for name, data in contents.items() if b"secret" in name.encode() + data]
    sent = onnx.load(io.BytesIO(contents["dryfit-kit/models/model-1.onnx"]))
    for before, after in zip(model.graph.initializer, sent.graph.initializer, strict=True):
        own, new = numpy_helper.to_array(before), numpy_helper.to_array(after)
        assert (own.shape, own.dtype) == (new.shape, new.dtype)
        if before.name.startswith("secret"):
            assert (own.min(), own.max()) == (new.min(), new.max())
            assert np.count_nonzero(np.isin(np.unique(new), own)) <= 2  # the ends of the range
        else:
            assert np.array_equal(own, new)  # scales, zero points and shapes decide what layers are


def test_random_weights_keep_the_placement_and_the_spread(digits_model: Path) -> None:
    model = onnx.load(digits_model)
    changed = without_weights(model)
    before, after = (
        [
            (layer.name, layer.device, layer.precision)
            for layer in dryfit.check(one, platform="orin-nx-16", **SHAPE).layers
        ]
        for one in (model, changed)
    )
    assert before == after
    assert without_weights(model) == changed
    large = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer if np.prod(one.dims) > 500}
    assert large
    for one in changed.graph.initializer:
        if one.name in large:
            own, new = large[one.name], numpy_helper.to_array(one)
            assert new.std() == pytest.approx(own.std(), rel=0.25)
            assert not np.array_equal(own, new)


# Probes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", ["orin-nx-16", pytest.param("xavier-nx", marks=pytest.mark.nightly)])
def test_the_inferred_rules_take_at_most_a_third_of_a_build_each(platform: str) -> None:
    chosen = probe_networks(platform, None, "inferred")
    assert len(chosen.decided) >= 11
    assert len(chosen.networks) <= len(chosen.decided) / 3, (len(chosen.networks), len(chosen.decided))
    assert all(why for why in chosen.undecided.values())
    assert not set(chosen.decided) & chosen.undecided.keys()
    for one in chosen.networks:
        answer = dryfit.check(one.model, platform=platform, **one.options)
        # A core does not load more segments than these.
        assert answer.summary.segments_by_device.get("DLA", 0) <= MOST_ACCEPTED
        assert not answer.refusals


@pytest.mark.nightly
def test_all_rules_take_at_most_a_third_of_a_build_each() -> None:
    chosen = probe_networks("orin-nx-16", None, "all")
    assert len(chosen.decided) >= 60
    assert len(chosen.networks) <= len(chosen.decided) / 3


def test_candidates_are_told_apart_by_their_names() -> None:
    names = [one.name for one in candidates()]
    assert len(names) == len(set(names)) >= 250


def test_networks_of_probes_are_valid_models_of_an_old_opset() -> None:
    model = network_of([one for one in candidates() if not one.is_alone])
    onnx.checker.check_model(model, full_check=False)
    assert [one.version for one in model.opset_import] == [13]
    assert {node.name for node in model.graph.node} >= {"conv_kernel_33", "lrn_9"}


def test_a_line_of_the_kit_is_chosen_by_the_version_of_the_board(monkeypatch: pytest.MonkeyPatch) -> None:
    build = {
        "inputs": [{"name": "a:b", "file": "f"}],
        "lines": [
            {"since": [8, 4], "until": [8, 6], "arguments": ["--old"]},
            {"since": [8, 6], "until": [11], "arguments": ["--new"]},
        ],
    }
    manifest = {"options": [{"name": "--verbose", "value": "", "since": [8, 0], "until": None, "needs_inputs": False}]}
    monkeypatch.setattr(on_board, "output_of", lambda command, seconds=30: "")
    for version, expected in (("8.5.2", "--old"), ("10.3", "--new"), ("", "--new")):
        trtexec = on_board.Trtexec("trtexec")
        trtexec.version = version
        assert trtexec.line(manifest, build, "work") == [expected, "--verbose"]  # a name with a colon is not passed
