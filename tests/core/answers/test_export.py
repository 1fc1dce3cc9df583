"""`dryfit.export_loadables` and `dryfit.export_trtexec`, and the engine files of `dryfit.answers.build`."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from tests.schemas import validate

import dryfit
from dryfit.answers.build import BuildAnswer, build
from dryfit.answers.export_loadables import ExportLoadablesAnswer
from dryfit.answers.export_trtexec import ExportTrtexecAnswer
from dryfit.errors import ConfigError, UnknownNameError

DLA = {"device": "DLA", "precision": "fp16", "fallback": "GPU"}
SHAPE = {"shape": {"image": (1, 1, 8, 8)}}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dla_config() -> dryfit.BuilderConfig:
    config = dryfit.BuilderConfig()
    config.default_device_type = "DLA"
    config.set_flag(dryfit.BuilderFlag.FP16)
    config.allow_fallback("GPU")
    return config


def test_a_path_a_model_and_a_network_give_the_same_loadables(digits_model: Path) -> None:
    model = onnx.load(digits_model)
    network = dryfit.network_from_onnx(digits_model)
    network.inputs[0].shape = (1, 1, 8, 8)
    of_path = dryfit.export_loadables(digits_model, "a", **DLA, **SHAPE)
    of_model = dryfit.export_loadables(model, "b", **DLA, **SHAPE)
    of_network = dryfit.export_loadables(network, "c", dla_config())
    contents = [[Path(one.file).read_bytes() for one in each.loadables] for each in (of_path, of_model, of_network)]
    assert contents[0]
    assert contents[0] == contents[1] == contents[2]
    assert [Path(one.file).stat().st_size for one in of_path.loadables] == [one.size for one in of_path.loadables]
    assert not of_path.refused
    assert {"elu2", "softmax"} <= {layer.name for layer in of_path.layers if layer.device == "GPU"}


def test_the_answer_is_json_as_its_schema_promises_and_the_text_of_the_command(digits_model: Path) -> None:
    answer = dryfit.export_loadables(digits_model, "loadables", **DLA, **SHAPE)
    validate(answer.to_dict(), ExportLoadablesAnswer.schema())
    (first, *_) = answer.to_dict()["loadables"]
    assert {"file", "bytes", "id", "device", "layers", "pools"} <= first.keys()
    assert "loadables/digits.segment0.loadable" in str(answer)
    assert repr(answer).startswith("<ExportLoadablesAnswer: ")


def test_what_cannot_be_exported_is_refused_by_name(digits_model: Path) -> None:
    with pytest.raises(UnknownNameError, match="devise"):
        dryfit.export_loadables(digits_model, "a", devise="DLA")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="cannot be combined"):
        dryfit.export_loadables(digits_model, "a", dla_config(), device="DLA")
    dryfit.export_loadables(digits_model, "a", **DLA, **SHAPE)
    with pytest.raises(ConfigError, match="--force"):
        dryfit.export_loadables(digits_model, "a", **DLA, **SHAPE)
    assert dryfit.export_loadables(digits_model, "a", force=True, **DLA, **SHAPE).loadables


def test_an_engine_file_is_described_by_its_answer(digits_model: Path) -> None:
    answer = build(digits_model, "digits.engine", stripped=True, **DLA, **SHAPE)
    assert isinstance(answer, BuildAnswer)
    assert answer.engine_bytes == Path("digits.engine").stat().st_size
    assert answer.overflows is None
    assert "without weights" in answer.summary_line()
    validate(answer.to_dict(), BuildAnswer.schema())
    with pytest.raises(ConfigError, match="stripped"):
        build(digits_model, "digits.engine", stripped=True, data={}, **SHAPE)


def test_a_path_a_model_and_a_config_are_told_to_the_board_alike(digits_model: Path) -> None:
    of_path = dryfit.export_trtexec(digits_model, **DLA, **SHAPE)
    model = onnx.load(digits_model)
    of_model = dryfit.export_trtexec(model, **DLA, **SHAPE)
    network = dryfit.network_from_onnx(digits_model)
    profile = dryfit.OptimizationProfile()
    profile.set_shape("image", *[(1, 1, 8, 8)] * 3)
    config = dla_config()
    config.add_optimization_profile(profile)
    of_network = dryfit.export_trtexec(network, config, tensorrt="10.3")
    assert of_path.command is not None
    assert of_path.command[:2] == ["trtexec", f"--onnx={digits_model}"]
    assert of_model.command is not None
    assert of_model.command[1] == "--onnx=digits.onnx"
    assert of_network.command is not None
    assert of_path.command[3:] == of_model.command[3:] == of_network.command[3:]
    assert of_network.tensorrt == "10.3"
    assert str(of_path) == of_path.shell
    assert not list(Path().iterdir())


def test_a_config_of_ones_own_stays_as_it_was(digits_model: Path) -> None:
    network, config = dryfit.network_from_onnx(digits_model), dla_config()
    network.inputs[0].shape = (1, 1, 8, 8)
    config.set_device_type(network.layers[0], "GPU")
    before = config.explicit_device_types(network)
    answer = dryfit.export_trtexec(network, config, every_layer=True, output="build.sh")
    assert config.explicit_device_types(network) == before
    assert answer.shell is not None
    assert answer.shell.count(":GPU") > 1
    assert [one.file for one in answer.files] == ["build.sh"]
    assert str(answer) == "build.sh: trtexec's command line"
    validate(answer.to_dict(), ExportTrtexecAnswer.schema())


def test_an_engine_takes_no_config_and_no_options(digits_model: Path) -> None:
    build(digits_model, "digits.engine", **DLA, **SHAPE)
    told = dryfit.export_trtexec("digits.engine", onnx=digits_model, use_dla_core=1)
    assert told.command is not None
    assert "--useDLACore=1" in told.command
    with pytest.raises(ConfigError, match="Build options cannot be given for an engine"):
        dryfit.export_trtexec("digits.engine", dla_config(), onnx=digits_model)
    with pytest.raises(ConfigError, match="options for precision"):
        dryfit.export_trtexec("digits.engine", onnx=digits_model, precision="int8")


def test_a_board_that_is_named_is_exported_for_as_check_answers_for_it(repository):
    """The defaults of check and build hold for exports, too, and are shown."""
    answer = dryfit.export_trtexec(
        repository / "examples/digits/digits.onnx", platform="orin-nx-16", shape={"image": (1, 1, 8, 8)}
    )
    assert answer.command is not None
    assert {"--fp16", "--useDLACore=0", "--allowGPUFallback"} <= set(answer.command)
    assert answer.notes[0] == "defaults: --device DLA --precision fp16 --fallback GPU"
