"""`dryfit estimate`: every figure called an estimate, and the figures those of the targets."""

from __future__ import annotations

from typing import Any

import pytest
from tests.schemas import validate

import dryfit
from dryfit.answers.estimate import EstimateAnswer
from dryfit.estimate_text import duration, two_digits

SHAPE = ("--shape", "image=2x1x8x8", "--platform", "agx-orin-64")


def answer(dryfit_command: Any, model: Any, *options: str) -> Any:
    found = dryfit_command("estimate", model, *SHAPE, *options, "--json").json
    validate(found, EstimateAnswer.schema())
    return found


def test_it_asks_about_the_accelerator_of_the_board_where_nothing_was_said(
    dryfit_command: Any, digits_model: Any
) -> None:
    found = answer(dryfit_command, digits_model, "--platform", "agx-orin-64", "--power-mode", "MAXN")
    assert (found["device"], found["platform"], found["power_mode"]) == ("DLA", "agx-orin-64", "MAXN")
    assert found["assumed"] == ["--device DLA", "--precision fp16", "--fallback GPU"]


def test_the_command_prints_the_answer_of_python(dryfit_command: Any, digits_model: Any) -> None:
    found = dryfit.estimate(digits_model, platform="agx-orin-64", precision="int8", shape={"image": (2, 1, 8, 8)})
    asked = ("estimate", digits_model, *SHAPE, "--int8")
    assert found.to_json() + "\n" == dryfit_command(*asked, "--json").out
    assert f"{found}\n" == dryfit_command(*asked).out
    assert found.network.latency_text in repr(found)


def test_a_board_without_an_accelerator_is_asked_about_its_gpu(dryfit_command: Any, digits_model: Any) -> None:
    found = answer(dryfit_command, digits_model, "--platform", "orin-nano")
    assert (found["device"], found["platform"], found["power_mode"]) == ("GPU", "orin-nano", "MAXN")


def test_the_figures_of_a_network_are_those_of_its_steps(dryfit_command: Any, digits_model: Any) -> None:
    found = answer(dryfit_command, digits_model)
    network = found["network"]
    times = sum(one["microseconds"] for one in found["layers"])
    copies = sum(one["microseconds"] for one in found["transfers"])
    assert network["latency_microseconds"] == pytest.approx(times + copies)
    assert sum(one["macs"] for one in found["layers"]) == network["macs"]
    busy = sum(one["microseconds"] for one in found["layers"] if one["device"] == "DLA")
    assert [one["images_per_second"] for one in network["throughput"]] == pytest.approx(
        [cores * found["batch"] / busy * 1e6 for cores in (1, 2)]
    )
    rate = network["throughput"][-1]["images_per_second"] / found["batch"]
    assert network["tops_used"] == pytest.approx(2 * network["macs_on_device"] * rate / 1e12)


def test_each_step_is_the_sum_of_its_parts(dryfit_command: Any, digits_model: Any) -> None:
    for one in answer(dryfit_command, digits_model)["layers"]:
        if one["device"] == "DLA":
            parts = [one[f"{part}_microseconds"] for part in ("compute", "memory", "overhead")]
            assert one["microseconds"] == pytest.approx(sum(parts))


@pytest.mark.parametrize(
    ("platform", "modes"),
    [("agx-orin-64", ("MAXN", "50W", "30W", "15W")), ("agx-xavier", ("MAXN", "30W", "15W", "10W"))],
)
def test_power_modes_are_in_the_order_of_their_clocks(
    dryfit_command: Any, digits_model: Any, platform: str, modes: tuple[str, ...]
) -> None:
    busy = []
    for mode in modes:
        found = answer(dryfit_command, digits_model, "--platform", platform, "--power-mode", mode)
        busy.append(found["network"]["busy_microseconds"])
    assert busy == sorted(busy)
    assert len(set(busy)) == len(modes)


@pytest.mark.parametrize("sparsity", ["disable", "enable", "force"])
def test_layers_too_narrow_for_sparsity_are_dense_in_every_mode(
    dryfit_command: Any, digits_model: Any, sparsity: str
) -> None:
    found = answer(dryfit_command, digits_model, "--sparsity", sparsity)
    assert (found["sparsity"], found["sparse_layers"]) == (sparsity, [])


TIMED = ["Segments", "Copies between devices"]
"""Tables that give each time with its uncertainty, or as a lower bound."""


def test_the_page_for_people_calls_every_figure_an_estimate(dryfit_command: Any, digits_model: Any) -> None:
    printed = dryfit_command("estimate", digits_model, *SHAPE).out
    assert printed.startswith("Estimated cost of ")
    note = "\nAll times, rates and energies are estimates by formula; nothing was measured.\n"
    head, tables = printed.split(note)
    titles = [line for line in tables.splitlines() if line and not line.startswith((" ", "Defaults", "Basis"))]
    assert titles == ["Steps of one inference (a single step is less certain than the sum)", *TIMED]
    assert "~" in head
    for title in TIMED:
        _, *rows = tables.split(f"\n{title}\n")[1].split("\nBasis")[0].split(f"\n{TIMED[-1]}\n")[0].splitlines()
        assert rows
        assert all((" ~" in row and "(" in row) or "at least " in row for row in rows)
    assert "fitted to the published figures of ResNet-50" in printed


def test_the_energy_of_a_run_is_that_of_its_segments_and_copies(dryfit_command: Any, digits_model: Any) -> None:
    found = dryfit_command("estimate", digits_model, *SHAPE, "--json").json
    parts = [one["energy"] for one in (*found["segments"], *found["transfers"])]
    unit = "DLA us of agx-orin-64 in MAXN"
    assert {one["unit"] for one in parts} == {unit}
    assert found["network"]["energy"] == {"amount": pytest.approx(sum(one["amount"] for one in parts)), "unit": unit}
    assert all(one["basis"] and one["source"] for one in parts)
    of_dla = [(one["energy"]["amount"], one["microseconds"]) for one in found["segments"] if one["device"] == "DLA"]
    assert all(drawn == pytest.approx(taken) for drawn, taken in of_dla)
    told = f"{two_digits(found['network']['energy']['amount'])} {unit} +-80 %"
    assert f"energy (relative): {told}" in dryfit_command("estimate", digits_model, *SHAPE).out


def test_a_board_without_published_efficiency_has_times_and_no_energy(dryfit_command: Any, digits_model: Any) -> None:
    asked = ("estimate", digits_model, *SHAPE, "--platform", "agx-xavier")
    found = dryfit_command(*asked, "--json").json
    assert found["network"]["energy"] is None
    assert found["network"]["latency_microseconds"] > 0
    assert "energy (" not in dryfit_command(*asked).out


def test_an_unknown_power_mode_is_refused_with_those_of_the_board(dryfit_command: Any, digits_model: Any) -> None:
    ended = dryfit_command("estimate", digits_model, *SHAPE, "--power-mode", "60W")
    assert ended.code == 2
    assert "Unknown power mode of agx-orin-64: '60W' (allowed: 15W, 30W, 50W, MAXN; " in ended.err


def test_layers_that_can_run_nowhere_have_no_estimate(dryfit_command: Any, digits_model: Any) -> None:
    ended = dryfit_command(
        "estimate", digits_model, *SHAPE, "--device", "DLA", "--fallback", "DLA", "--precision", "fp16"
    )
    assert ended.code == 2
    assert "elu2" in ended.err


def test_the_same_question_has_the_same_answer(dryfit_command: Any, digits_model: Any) -> None:
    first, second = (dryfit_command("estimate", digits_model, *SHAPE, "--json").out for _ in range(2))
    assert first == second


@pytest.mark.parametrize("precision", [("--precision", "int8"), ("--int8",), ("--precision", "int8,fp16")])
def test_int8_without_scales_is_asked_about_with_scales_and_says_so(
    dryfit_command: Any, digits_model: Any, precision: tuple[str, ...]
) -> None:
    found = answer(dryfit_command, digits_model, "--platform", "orin-nx-16", *precision)
    assert "--assume-scales" in found["assumed"]
    assert "DLA" in found["devices"]
    assert found["network"]["macs_on_device"] > 0
    printed = dryfit_command("estimate", digits_model, *SHAPE, *precision).out
    assert "--assume-scales" in next(line for line in printed.splitlines() if line.startswith("Defaults: "))


def test_figures_of_one_device_do_not_stand_under_the_name_of_another(
    dryfit_command: Any, digits_model: Any, tmp_path: Any
) -> None:
    placement = tmp_path / "all.txt"
    placement.write_text("* = GPU\n", encoding="utf-8")
    asked = ("--platform", "orin-nx-16", "--placement", placement)
    assert answer(dryfit_command, digits_model, *asked)["devices"] == ["GPU"]
    printed = dryfit_command("estimate", digits_model, *SHAPE, *asked).out
    first = printed.splitlines()[0]
    assert " on GPU, batch 2: " in first
    assert first.endswith(": no layer runs on DLA (orin-nx-16 10.16) in power mode MAXN")
    assert "n/a (no layer runs on DLA)" in printed


def test_a_figure_in_fp16_on_orin_is_an_order_of_magnitude(dryfit_command: Any, digits_model: Any) -> None:
    found = answer(dryfit_command, digits_model, "--precision", "fp16", "--platform", "agx-orin-64")
    (segment, *_) = [one for one in found["segments"] if one["device"] == "DLA"]
    assert segment["error_factor"] == pytest.approx(10)
    assert segment["text"].endswith("(order of magnitude)")
    for command in (("check", "--verbose", "--fallback", "GPU"), ("explain", "--no-edits")):
        options = ("--device", "DLA", "--precision", "fp16", *command[1:])
        printed = dryfit_command(command[0], digits_model, *SHAPE, *options).out
        assert "(order of magnitude)" in printed


def test_a_figure_in_int8_has_its_error_and_two_digits(dryfit_command: Any, digits_model: Any) -> None:
    found = answer(dryfit_command, digits_model, "--platform", "agx-orin-64", "--precision", "int8,fp16")
    (segment, *_) = [one for one in found["segments"] if one["device"] == "DLA"]
    assert segment["error_factor"] == pytest.approx(1.15)
    assert segment["text"] == f"{duration(segment['microseconds'])} +-15 %"
    network = found["network"]
    assert 1.15 < network["latency_error_factor"] < 3
    assert network["lower_bounds"] == ["GPU"]


@pytest.mark.parametrize(
    ("device", "words"), [("CPU", "roofline of this machine"), ("GPU", "no board given, so NVIDIA T4 is assumed")]
)
def test_the_host_and_a_gpu_without_a_board_are_estimated_and_what_they_rest_on_is_said(
    dryfit_command: Any, digits_model: Any, device: str, words: str
) -> None:
    options = ("--shape", "image=2x1x8x8", "--device", device, "--fallback", "CPU", "--precision", "fp16")
    found = dryfit_command("estimate", digits_model, *options, "--json").json
    assert found["network"]["latency_microseconds"] > 0
    assert found["network"]["latency_text"].startswith("at least ")
    segment = next(one for one in found["segments"] if one["device"] == device)
    assert words in segment["basis"]
    assert (segment["is_lower_bound"], segment["fidelity"]) == (True, "inferred")


@pytest.mark.parametrize(
    ("platform", "mode"),
    [
        *(("orin-nx-16", mode) for mode in ("25W", "15W", "10W")),
        *(("orin-nx-8", mode) for mode in ("20W", "15W", "10W")),
        *(("agx-orin-32", mode) for mode in ("40W", "30W", "15W")),
        *(("orin-nano", mode) for mode in ("15W", "7W")),
    ],
)
def test_boards_have_their_power_modes(dryfit_command: Any, digits_model: Any, platform: str, mode: str) -> None:
    found = answer(dryfit_command, digits_model, "--platform", platform, "--power-mode", mode)
    assert found["network"]["latency_microseconds"] > 0


@pytest.mark.parametrize(
    ("platform", "reason"), [("orin-nx-16", "we have no DLA clocks for other modes"), ("xavier-nx", "20W modes")]
)
def test_a_power_mode_that_is_missing_is_told_with_the_reason(
    dryfit_command: Any, digits_model: Any, platform: str, reason: str
) -> None:
    ended = dryfit_command("estimate", digits_model, *SHAPE, "--platform", platform, "--power-mode", "40W")
    assert ended.code == 2
    assert reason in " ".join(ended.err.split())
