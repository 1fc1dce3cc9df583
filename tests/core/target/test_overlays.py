from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import numpy as np
import pytest
from docs.pages.overlays import overlay_schema
from tests.schemas import validate

import dryfit
from dryfit.plugins import registry
from dryfit.plugins.discovery import OVERLAYS
from dryfit.plugins.overlays import installed_overlays, require_known_overlays
from dryfit.target.overlay_file import overlay_from_bytes
from dryfit.target.overlays import overlaid, overlay_text

HEAD = """schema = 1
name = "my-board"
platform = "orin-nx-16"
software = "10.3"
author = "Ada"
made = 2026-11-23
source = "61 builds"
"""
FULL = f"""{HEAD}
[rules."dla.convolution.kernel"]
limits = {{ high = 2 }}
layers = 4
reason = "2 was built, 3 was refused"

[rules."dla.pooling.window"]
enabled = false
layers = 3

[rules."dla.unary.software"]
limits = {{ first = "8.5" }}

[cost.dla]
bytes_per_second = {{ value = 41200000000.0, error = 0.04, measurements = 40 }}
"rates.INT8.macs_per_cycle" = {{ value = 4096 }}

[confirmed]
"dla.convolution.stride" = {{ layers = 12 }}
"""


def overlay(text: str = FULL, origin: str = "test") -> Any:
    return overlay_from_bytes(text.encode(), origin)


def convolution(window: int = 3) -> dryfit.Network:
    network = dryfit.Network("one")
    x = network.add_input("x", dryfit.DataType.FLOAT, (1, 8, 16, 16))
    kernel = np.ones((8, 8, window, window), np.float32)
    layer = network.add_convolution_nd(x, 8, (window, window), kernel, None)
    layer.name = "conv"
    network.mark_output(layer.get_output(0))
    return network


def test_a_written_overlay_reads_as_the_same(tmp_path: Path) -> None:
    dryfit.write_overlay(overlay(), tmp_path / "board.toml")
    assert (tmp_path / "board.toml").read_text() == FULL
    assert overlay_text(dryfit.read_overlay(tmp_path / "board.toml")) == FULL


def test_the_published_schema_is_that_of_a_written_overlay() -> None:
    parsed = tomllib.loads(FULL)
    validate(parsed, overlay_schema())
    for wrong in ({"name": ""}, {"schema": 2}, {"rules": {"dla.a": {"layers": 1}}}, {"rule": {}}):
        with pytest.raises(jsonschema.ValidationError):
            validate({**parsed, **wrong}, overlay_schema())


def test_a_moved_limit_changes_verdict_text_source_and_fidelity() -> None:
    options: Any = {"device": "DLA", "fallback": "GPU", "overlays": overlay()}
    answer = dryfit.check(convolution(), **options)
    [found] = answer.layers[0].violations("DLA")
    assert (found.rule, found.allowed, found.fidelity) == ("dla.convolution.kernel", "each 1 to 2", "confirmed")
    assert "overlay my-board for orin-nx-16, TensorRT 10.3: 61 builds; 2 was built, 3 was refused" in found.source
    assert (answer.platform, answer.software) == ("orin-nx-16", "10.3")
    assert answer.overlays == [overlay().label]
    assert f"Overlays: {overlay().label}" in str(answer)
    assert dryfit.check(convolution(2), **options).layers[0].device == "DLA"
    assert dryfit.check(convolution(), device="DLA", platform="orin-nx-16").layers[0].device == "DLA"


def test_rules_are_switched_off_and_confirmed() -> None:
    table = overlaid(registry.target("DLA"), (overlay(),)).limits
    assert table is not None
    assert not [one for one in table.all_rules if one.id == "dla.pooling.window"]
    stride = table.rule("dla.convolution.stride")
    assert stride.fidelity == "confirmed"
    assert stride.source.endswith("confirmed by 12 layers on orin-nx-16, TensorRT 10.3 (overlay my-board)")
    assert table.rule("dla.unary.software").text == "software must be 8.5 or newer"


def test_cost_parameters_change_estimates_and_their_source() -> None:
    plain = dryfit.estimate(convolution(), platform="orin-nx-16", software="10.3", precision="int8")
    slow = f"{HEAD}[cost.dla]\nstep_seconds = {{ value = 1e-3 }}\nkept_bytes = {{ value = 0 }}\n"
    found = dryfit.estimate(convolution(), precision="int8", overlays=overlay(slow))
    assert found.layers[0].overhead_microseconds == pytest.approx(plain.layers[0].overhead_microseconds + 1e3 - 7.501)
    assert found.layers[0].bytes_moved > plain.layers[0].bytes_moved
    assert found.segments[0].source.startswith("step_seconds, kept_bytes from overlay my-board: 61 builds; all else ")


def test_an_engine_says_which_overlays_it_was_built_with(tmp_path: Path) -> None:
    config = dryfit.BuilderConfig()
    config.default_device_type = "DLA"
    config.set_flag(dryfit.BuilderFlag.FP16)
    config.allow_gpu_fallback(True)
    config.set_platform("DLA", "orin-nx-16")
    config.set_software("DLA", "10.3")
    config.overlays = [overlay(HEAD + '[confirmed]\n"dla.convolution.stride" = { layers = 2 }\n')]
    engine = dryfit.Builder().build_engine(convolution(), config)
    engine.save(tmp_path / "one.engine")
    assert "1 confirmed rule" in dryfit.Engine.load(tmp_path / "one.engine").plan.settings["overlays"][0]
    config.overlays = []
    assert "overlays" not in config.settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = 1", ["test, schema", "allowed: 1"]),
        (HEAD.replace("schema = 1", "schema = 2"), ["found 2"]),
        (HEAD + "nonsense", ["not valid TOML", "at end of document"]),
        (HEAD + "[rule]", ["'rule'", "Did you mean 'rules'?"]),
        (HEAD.replace('"10.3"', '"ten"'), ["test, software", "found 'ten'"]),
        (HEAD.replace('name = "my-board"', 'name = "a\\nb"'), ["test, name", "one line of text"]),
        (HEAD + '[rules."dla.pooling.window"]\nlayers = 3', ["enabled = false, or limits"]),
        (HEAD + '[rules."dla.pooling.window"]\nenabled = 0', ["true or false"]),
        (HEAD + "[cost.dla]\nstep_seconds = 1", ["cost.dla", "a table"]),
        (HEAD + "[cost.dla]\nstep_seconds = { value = inf }", ["a finite number, at least 0"]),
        (HEAD + f"[cost.dla]\nkept_bytes = {{ value = {'9' * 400} }}", ["a finite number, at least 0"]),
        (HEAD + f'[rules."dla.a"]\nlimits = {{ high = {"9" * 5000} }}', ["not valid TOML", "4300 digits"]),
        (HEAD + '[rules."dla.a"]\nlimits = { high = nan }', ["limits.high", "a finite number"]),
        (HEAD + '[rules."dla.a"]\nlimits = { values = [1, inf] }', ["limits.values", "a finite number"]),
        (HEAD + '[rules."dla.a"]\nlimits = { high = 2026-01-01 }', ["limits.high", "a finite number"]),
        (HEAD + "a = " + "[" * 100_000, ["not valid TOML", "recursion"]),
        (HEAD + "[" + ".".join("a" * 900) + "]", ["Unknown field: 'a'"]),
        (HEAD.replace("10.3", "\u0661\u0660.\u0663"), ["test, software", "a version such as"]),
        (HEAD.replace("my-board", "a\u202eb"), ["test, name", "one line of text"]),
        (HEAD.replace("my-board", "\\u001b[31m"), ["test, name", "one line of text"]),
        ("#" * (1 << 20) + HEAD, ["too large for an overlay"]),
        (
            HEAD + '[rules."dla.a"]\nenabled = false\n[confirmed]\n"dla.a" = { layers = 1 }',
            ["The overlay contradicts itself", "rule dla.a as documented: not so in my-board"],
        ),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_what_is_allowed(text: str, words: list[str]) -> None:
    with pytest.raises(dryfit.DryfitError) as caught:
        overlay(text)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[rules."dla.convolution.kernal"]\nenabled = false', ["Did you mean 'dla.convolution.kernel'?"]),
        ('[rules."dla.convolution.kernel"]\nlimits = { hihg = 3 }', ["limit of dla.convolution.kernel", "'high'?"]),
        ('[rules."dla.convolution.kernel"]\nlimits = { high = "3" }', ["allowed: one number"]),
        ('[rules."dla.activation.type"]\nlimits = { values = "RELU" }', ["allowed: a list of strings"]),
        ('[rules."dla.layer.kind"]\nenabled = false', ["follows from other declarations"]),
        ('[rules."npu.x"]\nenabled = false', ["device", "'NPU'"]),
        ("[cost.dla]\nstep_second = { value = 1 }", ["cost parameter", "'step_seconds'?"]),
        ("[cost.dla]\nkept_bytes = { value = 1.5 }", ["a whole number"]),
        ('[rules."dla.unary.software"]\nlimits = { first = "8;x" }', ["limit first", "one version"]),
        ("[cost.gpu]\nx = { value = 1 }", ["cost parameter", "'x'"]),
    ],
)  # fmt: skip
def test_what_no_target_has_is_refused_with_the_closest_name(text: str, words: list[str]) -> None:
    with pytest.raises(dryfit.DryfitError) as caught:
        require_known_overlays([overlay(HEAD + text)])
    assert [word for word in words if word not in str(caught.value)] == []


def test_contradictions_are_named_with_their_sources() -> None:
    other = FULL.replace("high = 2", "high = 4").replace("my-board", "other").replace("61 builds", "a log")
    other = other.replace("41200000000.0", "1000.0")
    with pytest.raises(dryfit.ConfigError) as caught:
        dryfit.check(convolution(), overlays=[overlay(), overlay(other, "b")])
    told = str(caught.value)
    assert "limit high of dla.convolution.kernel: 2 in my-board by Ada (61 builds), 4 in other by Ada (a log)" in told
    assert "cost parameter bytes_per_second of DLA: 41200000000.0 in my-board by Ada" in told
    assert caught.value.where == "overlay test and overlay b"


def test_parameters_that_differ_in_their_last_digits_contradict_each_other() -> None:
    one = overlay(f"{HEAD}[cost.dla]\nstep_seconds = {{ value = 1.0000001e-6 }}\n")
    other = overlay(f"{HEAD}[cost.dla]\nstep_seconds = {{ value = 1.0000002e-6 }}\n")
    with pytest.raises(dryfit.ConfigError, match=r"1\.0000001e-06 in my-board.*1\.0000002e-06 in my-board"):
        dryfit.estimate(convolution(), overlays=[one, other])


def test_an_overlay_of_a_device_that_the_build_does_not_use_is_said_to_have_no_effect() -> None:
    answer = dryfit.check(convolution(), device="GPU", overlays=overlay())
    assert answer.overlays == []
    assert "Note: overlay test has no effect: it corrects DLA, which this build does not use." in answer.notes
    answer = dryfit.compare_devices(convolution(), ["dla@orin-nx-16", "cpu"], overlays=overlay(), precision="fp16")
    assert (answer.overlays, answer.notes) == ([overlay().label], [])
    answer = dryfit.compare_devices(convolution(), ["gpu", "cpu"], overlays=overlay())
    assert (answer.overlays, len(answer.notes)) == ([], 1)


def test_overlays_that_agree_merge() -> None:
    one = overlay(HEAD + '[rules."dla.pooling.window"]\nenabled = false')
    other = overlay(HEAD.replace("my-board", "other") + '[rules."dla.convolution.kernel"]\nlimits = { high = 2 }')
    answer = dryfit.check(convolution(), overlays=[one, other, overlay(overlay_text(one))])
    assert len(answer.layers[0].violations("DLA")) == 1
    assert answer.overlays == [one.label, other.label]


@pytest.mark.parametrize(("option", "value"), [("platform", "agx-orin-64"), ("software", "10.7")])
def test_an_overlay_of_another_board_is_refused(option: str, value: str) -> None:
    options: Any = {option: value}
    with pytest.raises(dryfit.ConfigError, match=f"for another {option}.*Use --platform orin-nx-16 --software 10.3"):
        dryfit.check(convolution(), device="DLA", overlays=overlay(), **options)


def test_a_package_brings_an_overlay_that_holds_for_its_board_alone(install_package: Any, monkeypatch: Any) -> None:
    folder = install_package(
        "acme", {OVERLAYS: {"nx": "acme:nx.toml", "gone": "acme:gone.toml"}}, {"acme.__init__": "raise SystemExit"}
    )
    (Path(folder) / "acme" / "nx.toml").write_text(FULL)
    monkeypatch.delenv("DRYFIT_DISABLE_PLUGINS", raising=False)
    registry.begin_again(disabled="")
    try:
        assert [one.name for one in installed_overlays()] == ["my-board"]
        assert ["must name a file of its package" in one.message for one in registry.failures()] == [True]
        found = dryfit.check(convolution(), device="DLA", platform="orin-nx-16", software="10.3", fallback="GPU")
        assert found.layers[0].device == "GPU"
        assert found.overlays == [installed_overlays()[0].label]
        assert dryfit.check(convolution(), device="DLA", platform="orin-nx-16").overlays == []
    finally:
        registry.begin_again()


def test_every_number_of_a_check_is_a_limit_that_can_be_moved() -> None:
    table = registry.target("DLA").limits
    assert table is not None
    for one in table.rules:
        for name, value in one.limits.items():
            several = isinstance(value, tuple)
            moved = value[:1] if several else value
            same = one.with_limits({name: moved})
            assert same.limits[name] == moved
            if not several:
                assert (same.text, attrs.asdict(same)["fidelity"]) == (one.text, one.fidelity)
