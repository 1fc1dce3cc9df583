from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

DLA = ("--device", "dla", "--precision", "fp16", "--shape", "image=1x1x8x8", "--fallback", "GPU")

SCRIPT = """
def place(network, config):
    for layer in network:
        if layer.kind == "convolution" and config.can_run_on(layer, "DLA"):
            config.set_device_type(layer, "DLA")
"""


def devices(answer: Any) -> dict[str, str]:
    return {layer["name"]: layer["device"] for layer in answer["layers"]}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_script_places_layers(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    script = write(tmp_path, "place.py", SCRIPT)
    options = ("--precision", "fp16", "--shape", "image=1x1x8x8", "--fallback", "GPU", "--placement", script)
    found = devices(dryfit_command("check", digits_model, *options, "--json").json)
    assert {name for name, device in found.items() if device == "DLA"} == {"conv1", "conv2", "conv3"}


def test_a_script_sees_the_config_that_the_options_describe(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    script = write(
        tmp_path,
        "place.py",
        "def place(network, config):\n"
        "    assert network.num_layers == len(network.layers)\n"
        "    assert config.platform('DLA').name == 'agx-xavier', config.platform('DLA')\n"
        "    assert config.assume_scales\n"
        "    assert config.fallback_device == 'GPU'\n",
    )
    options = (*DLA, "--platform", "xavier", "--assume-scales", "--placement", script)
    assert dryfit_command("check", digits_model, *options).code == 0


def test_rules_place_layers_whatever_the_suffix_is(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    for name in ("rules.txt", "rules", "rules.placement"):
        rules = write(tmp_path, name, "* = GPU\nkind:convolution = DLA\nonnx:conv2 = GPU  # too small\n")
        found = devices(dryfit_command("check", digits_model, *DLA, "--placement", rules, "--json").json)
        assert {name for name, device in found.items() if device == "DLA"} == {"conv1", "conv3"}


def test_layer_device_types_win_over_the_file(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    rules = write(tmp_path, "rules.txt", "conv* = GPU")
    options = (*DLA, "--placement", rules, "--layer-device-types", "conv1:DLA")
    found = devices(dryfit_command("check", digits_model, *options, "--json").json)
    assert (found["conv1"], found["conv2"]) == ("DLA", "GPU")


def test_a_build_places_by_the_same_rules(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    script = write(tmp_path, "place.py", SCRIPT)
    engine = tmp_path / "digits.dryfit"
    options = ("--precision", "fp16", "--shape", "image=1x1x8x8", "--fallback", "GPU", "--placement", script)
    built = dryfit_command("build", digits_model, "-o", engine, *options, "--json")
    assert built.code == 0
    assert {name for name, device in devices(built.json).items() if device == "DLA"} == {"conv1", "conv2", "conv3"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def place(network, config)\n    pass\n",
            "line 1: The placement script is not valid Python (found expected ':')",
        ),
        ("import sys\nsys.exit(3)\n", "line 2: The placement script must not exit the program (found exit 3)"),
        ("1 / 0\n", "line 1: The placement script failed (found ZeroDivisionError: division by zero)"),
        ("def placed(network, config): pass\n", "Unknown function: 'place' (allowed: placed)"),
        ("def place(network, config):\n    network.layer('conv9')\n", "line 2: The placement script failed"),
        ("def place(network, config):\n    network.layer('conv9')\n", "Unknown layer: 'conv9'"),
        ("def place(network):\n    pass\n", "TypeError: place() takes 1 positional argument but 2 were given"),
    ],
)
def test_a_script_that_fails_is_an_error_with_its_line(
    dryfit_command: Any, digits_model: Path, tmp_path: Path, text: str, message: str
) -> None:
    script = write(tmp_path, "place.py", text)
    ended = dryfit_command("check", digits_model, *DLA, "--placement", script)
    assert ended.code == 2
    assert message in ended.err
    assert str(script) in ended.err
    assert "Traceback" not in ended.err


def test_the_traceback_of_a_script_is_there_for_who_asks(
    dryfit_command: Any, digits_model: Path, tmp_path: Path
) -> None:
    script = write(tmp_path, "place.py", "def place(network, config):\n    helper()\n\ndef helper():\n    1 / 0\n")
    ended = dryfit_command("--debug", "check", digits_model, *DLA, "--placement", script)
    assert ended.code == 2
    assert f"{script}, line 5" in ended.err
    assert "Traceback" in ended.err
    assert "ZeroDivisionError" in ended.err


def test_rules_that_do_not_fit_are_an_error(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    rules = write(tmp_path, "rules.txt", "conv9 = DLA\nconv1 = TPU\n")
    ended = dryfit_command("check", digits_model, *DLA, "--placement", rules)
    assert ended.code == 2
    assert f"{rules}: The placement must match the network and the installed devices" in ended.err
    assert "line 1: Unknown layer 'conv9'. Did you mean 'conv" in ended.err
    assert "line 2: Unknown device: 'TPU'" in ended.err


def test_a_file_that_is_no_text_is_an_error(dryfit_command: Any, digits_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_bytes(b"\xff\xfe\x00")
    ended = dryfit_command("check", digits_model, *DLA, "--placement", path)
    assert ended.code == 2
    assert "cannot be read" in ended.err
