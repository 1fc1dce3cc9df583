"""`dryfit.explain_log` with a model: the log's settings place it, and each other device is shown with its reason."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import dryfit
from dryfit.answers.explain_log import ExplainLogAnswer
from dryfit.errors import ConfigError, UnknownNameError

HEAD = "&&&& RUNNING TensorRT.trtexec [TensorRT v{version}] # trtexec --onnx=d.onnx --shapes=image:1x1x8x8 {options}\n"
BOARD = "[I] Selected Device: {device}\n[I] SMs: {count}\n[I] Device Global Memory: {memory} MiB\n"
FELL = "[W] [TRT] Layer '{}' ({}): Unsupported on DLA. Switching this layer's device type to GPU.\n"
LISTS = (
    "[I] [TRT] ---------- Layers Running on DLA ----------\n"
    "[I] [TRT] [DlaLayer] {ForeignNode[conv1...norm2]}\n"
    "[I] [TRT] [DlaLayer] {ForeignNode[pool2...relu3]}\n"
    "[I] [TRT] ---------- Layers Running on GPU ----------\n"
    "[I] [TRT] [GpuLayer] ACTIVATION: elu2\n"
    "[I] [TRT] [GpuLayer] POOLING: average\n"
    "[I] [TRT] [GpuLayer] SOFTMAX: softmax\n"
)


def head(options: str = "--fp16 --useDLACore=0 --allowGPUFallback", version: str = "8502") -> str:
    return HEAD.format(version=version, options=options) + BOARD.format(device="Orin", count=16, memory=62780)


def explained(text: str, model: Path, **options: Any) -> ExplainLogAnswer:
    return dryfit.explain_log(io.BytesIO(text.encode()), model, **options)


def comparison(text: str, model: Path, **options: Any) -> Any:
    found = explained(text, model, **options).comparison
    assert found is not None
    return found


def test_a_log_that_agrees_has_no_difference(digits_model: Path) -> None:
    found = comparison(head() + FELL.format("elu2", "ACTIVATION") + LISTS, digits_model)
    assert (found.platform, found.software, found.notes) == ("agx-orin-64", "8.5.2", [])
    assert found.compared == found.agreeing == 13
    assert found.rules_found == {"elu2": ["dla.activation.type"]}
    assert not found.differences
    assert not found.unmatched


def test_a_layer_that_fell_back_though_dryfit_places_it_is_shown(digits_model: Path) -> None:
    found = comparison(head() + FELL.format("conv1", "CONVOLUTION") + LISTS, digits_model)
    (difference,) = found.differences
    assert (difference.layer, difference.log_device, difference.dryfit_device) == ("conv1", "GPU", "DLA")
    assert (difference.shown_by, list(difference.messages)) == ("message", ["fallback.unsupported"])
    assert not difference.dryfit_rules


def test_a_layer_on_the_dla_that_dryfit_refuses_is_shown_with_its_rules(digits_model: Path) -> None:
    lists = LISTS.replace("[I] [TRT] [GpuLayer] ACTIVATION: elu2\n", "").replace("pool2...", "elu2...")
    (difference,) = comparison(head() + lists, digits_model).differences
    assert (difference.layer, difference.log_device, difference.dryfit_device) == ("elu2", "DLA", "GPU")
    assert list(difference.dryfit_rules) == ["dla.activation.type"]
    assert "found ELU" in difference.reasons[0]


def test_a_layer_that_no_list_names_counts_as_inside_a_segment(digits_model: Path) -> None:
    lists = LISTS.replace("[I] [TRT] [GpuLayer] SOFTMAX: softmax\n", "")
    (difference,) = comparison(head() + lists, digits_model).differences
    assert (difference.layer, difference.shown_by) == ("softmax", "inside a segment")


def test_a_log_that_is_cut_off_before_its_lists_only_shows_what_it_names(digits_model: Path) -> None:
    found = comparison(head() + FELL.format("elu2", "ACTIVATION"), digits_model)
    assert (found.compared, found.agreeing) == (1, 1)


def test_the_rules_that_both_name_are_counted(digits_model: Path) -> None:
    reason = "[E] [TRT] elu2: ActivationLayer (with ActivationType = ELU) not supported for DLA.\n"
    found = comparison(head() + reason + FELL.format("elu2", "ACTIVATION") + LISTS, digits_model)
    assert found.same_rule == 1


def test_layers_that_the_model_lacks_are_shown_except_for_those_that_tensorrt_adds(digits_model: Path) -> None:
    text = head() + FELL.format("other", "SLICE") + FELL.format("(Unnamed Layer* 7) [Shuffle]", "SHUFFLE")
    assert comparison(text, digits_model).unmatched == ["other"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--int8 --useDLACore=1 --allowGPUFallback", ["--fallback GPU", "--use-dla-core 1", "--precision int8"]),
        ("--best --useDLACore=0", ["--fallback none", "--precision fp16,int8", "--assume-scales"]),
        ("--fp16 --useDLACore=0 --layerDeviceTypes=conv1:GPU --allowGPUFallback", ["--layer-device-types conv1:GPU"]),
        ("--fp16 --useDLACore=0 --memPoolSize=dlaSRAM:1 --allowGPUFallback", ["--mem-pool-size dlaSRAM:1"]),
    ],
)
def test_settings_of_the_command_line_place_the_model(digits_model: Path, options: str, expected: list[str]) -> None:
    told = " ".join(comparison(head(options), digits_model).options)
    assert all(one in told for one in expected), told


@pytest.mark.parametrize(
    ("device", "count", "memory", "version", "platform", "software"),
    [
        ("Orin", 16, 62780, "8502", "agx-orin-64", "8.5.2"),
        ("Orin", 14, 30000, "8502", "agx-orin-32", "8.5.2"),
        ("Orin", 8, 15388, "100300", "orin-nx-16", "10.3.0"),
        ("Orin", 8, 7600, "8502", "orin-nx-8", "8.5.2"),
        ("Xavier", 8, 31000, "8201", "agx-xavier", "8.2.1"),
        ("Xavier", 6, 7700, "8001", "xavier-nx", "8.0.1"),
    ],
)
def test_the_board_and_version_of_the_log_choose_the_rules(
    digits_model: Path, device: str, count: int, memory: int, version: str, platform: str, software: str
) -> None:
    text = HEAD.format(version=version, options="--fp16 --useDLACore=0 --allowGPUFallback")
    found = comparison(text + BOARD.format(device=device, count=count, memory=memory), digits_model)
    assert (found.platform, found.software) == (platform, software)


def test_what_the_log_does_not_show_is_assumed_and_noted(digits_model: Path) -> None:
    found = comparison(FELL.format("elu2", "ACTIVATION"), digits_model, shape={"image": (1, 1, 8, 8)})
    assert len(found.notes) == 3
    old = "[I] TensorRT version: 8.0.1\n" + FELL.format("elu2", "ACTIVATION")
    assert comparison(old, digits_model, shape={"image": (1, 1, 8, 8)}).platform == "agx-xavier"


def test_a_version_without_rules_is_replaced_and_noted(digits_model: Path) -> None:
    found = comparison(head(version="8201"), digits_model)
    assert found.software != "8.2.1"
    assert any("8.2.1" in note for note in found.notes)


def test_options_override_the_log(digits_model: Path) -> None:
    found = comparison(head(), digits_model, platform="orin-nx-16", software="10.3")
    assert (found.platform, found.software) == ("orin-nx-16", "10.3")
    assert "--platform" not in found.options


def test_wrong_options_are_refused(digits_model: Path) -> None:
    with pytest.raises(UnknownNameError):
        comparison(head(), digits_model, platform="orin-9")
    with pytest.raises((ConfigError, UnknownNameError)):
        comparison(head("--fp16 --useDLACore=0 --layerDeviceTypes=conv1:TPU"), digits_model)


def test_a_network_can_be_compared_too(digits_model: Path) -> None:
    network = dryfit.network_from_onnx(digits_model)
    found = dryfit.explain_log(io.BytesIO((head() + LISTS).encode()), network).comparison
    assert found is not None
    assert found.agreeing == 13


def test_a_build_for_the_gpu_is_compared_on_the_gpu(digits_model: Path) -> None:
    lists = "".join(f"[I] [TRT] [GpuLayer] CONVOLUTION: {name}\n" for name in ("conv1 + relu1", "softmax"))
    found = comparison(HEAD.format(version="8502", options="--fp16") + lists, digits_model)
    assert (found.compared, found.agreeing, len(found.notes)) == (3, 3, 1)


def test_a_refused_layer_has_no_device_in_either_placement(digits_model: Path) -> None:
    text = "[E] Default DLA is enabled but layer {} is not supported on DLA and falling back to GPU is not enabled.\n"
    answer = explained(text.format("elu2") + text.format("conv1"), digits_model, shape={"image": (1, 1, 8, 8)})
    assert "2 layers refused because fallback is disabled" in answer.summary_line()
    assert answer.comparison is not None
    (difference,) = answer.comparison.differences
    assert (difference.layer, difference.log_device, difference.dryfit_device) == ("conv1", "none", "DLA")
