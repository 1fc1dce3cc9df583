"""Logs of any form: encodings, line ends, colors, cut ends, other output, long lines, repeated and unknown messages."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.board.logs.public_logs import PUBLIC_LOGS

import dryfit
from dryfit.answers.explain_log import ExplainLogAnswer
from dryfit.board.logs.layer_lists import parts_of, segment_of
from dryfit.board.logs.prefixes import log_line
from dryfit.board.logs.raw_lines import CHUNK, LONGEST_LINE, RawLine, read_lines
from dryfit.board.logs.reading import MOST_UNKNOWN, read_log
from dryfit.board.logs.settings import version_of
from dryfit.errors import ExecutionError

FELL = "[W] [TRT] Layer '{}' (SLICE): Unsupported on DLA. Switching this layer's device type to GPU.\n"


def answer_of(text: str | bytes) -> ExplainLogAnswer:
    return dryfit.explain_log(io.BytesIO(text.encode() if isinstance(text, str) else text))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends_do_not_matter(encoding: str, end: str) -> None:
    for log in PUBLIC_LOGS:
        text = log.text.replace("\n", end)
        assert [one.name for one in answer_of(text.encode(encoding)).fallen] == list(log.fallen), log.source


def test_utf_16_that_was_appended_to_other_text_is_read() -> None:
    text = FELL.format("first").encode() + FELL.format("second").encode("utf-16-le")
    assert [one.name for one in answer_of(text).fallen] == ["first", "second"]


def test_a_stated_encoding_is_used() -> None:
    file = io.BytesIO(FELL.format("größe").encode("cp1252"))
    assert [one.name for one in dryfit.explain_log(file, encoding="cp1252").fallen] == ["größe"]


@pytest.mark.parametrize("color", ["\x1b[33m", "\x1b[1;33m", "[38;5;11m", "\x1b]0;title\x07"])
def test_colors_are_left_out(color: str) -> None:
    text = "".join(f"{color}{word} " for word in FELL.format("a").split(" "))
    assert [one.name for one in answer_of(text).fallen] == ["a"]


def test_a_name_with_brackets_is_not_taken_for_a_color() -> None:
    assert [one.name for one in answer_of(FELL.format("(Unnamed Layer* 7) [Shuffle]")).fallen] == [
        "(Unnamed Layer* 7) [Shuffle]"
    ]


def test_a_log_that_is_cut_off_anywhere_is_read() -> None:
    text = "".join(log.text for log in PUBLIC_LOGS).encode()
    whole = [one.name for one in answer_of(text).fallen]
    for end in range(0, len(text), 397):
        names = [one.name for one in answer_of(text[:end]).fallen]
        assert names == whole[: len(names)]


def test_a_log_that_begins_inside_a_line_is_read() -> None:
    text = "".join(log.text for log in PUBLIC_LOGS).encode()
    whole = {one.name for one in answer_of(text).fallen}
    for start in range(0, len(text), 397):
        assert {one.name for one in answer_of(text[start:]).fallen} <= whole


@given(st.binary(max_size=2000))
def test_any_bytes_are_a_log(data: bytes) -> None:
    answer = answer_of(data)
    assert answer.to_json()
    assert str(answer)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), max_size=20), st.randoms())
def test_other_output_between_the_lines_changes_no_layer(noise: list[str], chance: Random) -> None:
    log = PUBLIC_LOGS[0]
    lines = log.text.splitlines()[:4]
    for one in noise:
        if "DLA" not in one and "\r" not in one and len(one.splitlines()) < 2:
            lines.insert(chance.randrange(len(lines) + 1), f"my_program: {one}")
    fallen = answer_of("\n".join(lines)).fallen
    assert [one.name for one in fallen] == list(log.fallen)
    assert {one.name: list(one.rules) for one in fallen} == log.fallen


def test_lines_are_numbered_as_an_editor_numbers_them() -> None:
    assert [(one.number, one.text) for one in read_lines(io.BytesIO(b"a\r\nb\n\nc"))] == [
        (1, "a"),
        (2, "b"),
        (3, ""),
        (4, "c"),
    ]


def test_a_line_end_on_the_border_of_two_chunks_counts_once() -> None:
    text = b"x" * (CHUNK - 1) + b"\r\nsecond"
    assert [(one.number, len(one.text)) for one in read_lines(io.BytesIO(text))] == [(1, CHUNK - 1), (2, 6)]


def test_only_the_beginning_of_a_very_long_line_is_kept() -> None:
    text = b"[W] " + b"x" * (3 * LONGEST_LINE) + b"\n" + FELL.format("a").encode()
    answer = answer_of(text)
    assert answer.size.cut_lines == 1
    assert [one.name for one in answer.fallen] == ["a"]
    assert "1 MiB" in str(answer)


def test_a_list_of_layers_in_one_line_of_100_kib_is_whole() -> None:
    names = [f"model/layer{number}/conv" for number in range(5000)]
    text = "[I] [TRT] --------------- Layers running on GPU: \n[I] [TRT] " + ", ".join(names) + ", \n"
    assert [one.name for one in answer_of(text).gpu_layers] == names


def test_unknown_warnings_and_errors_are_listed_once_with_their_number() -> None:
    text = "".join(f"[W] [TRT] Tensor 'a{number}' has {number} strange values\n" for number in range(5))
    (unknown,) = answer_of(text + "[I] [TRT] nothing of note\n").unknown
    assert (unknown.severity, unknown.line, unknown.count) == ("warning", 1, 5)
    assert unknown.text == "Tensor 'a0' has 0 strange values"


def test_an_unknown_failure_without_a_severity_is_listed() -> None:
    assert [one.text for one in answer_of("DLA: something failed\nhello\n").unknown] == ["DLA: something failed"]


def test_too_many_different_unknown_messages_are_counted() -> None:
    def lines() -> Iterator[RawLine]:
        for number in range(MOST_UNKNOWN + 5):
            word = "".join(chr(97 + number // 26**place % 26) for place in range(4))
            yield RawLine(number + 1, f"[W] [TRT] {word}")

    log = read_log(lines())
    assert (len(log.unknown), log.dropped) == (MOST_UNKNOWN, 5)


def test_memory_does_not_grow_with_the_length_of_a_log() -> None:
    def peak_of(repeats: int) -> int:
        lines = [
            FELL.format("a"),
            "[V] [TRT] Tactic: 0x3 Time: 0.5\n",
            "[W] [TRT] a: DLA only supports slicing 4 dimensional tensors.\n",
            "[W] [TRT] Missing scale and zero-point for tensor t, expect fall back to non-int8 implementation\n",
            "[W] [TRT] some other warning 1\n",
        ]
        raw = (RawLine(number, line) for number, line in enumerate(lines * repeats))
        tracemalloc.start()
        read_log(raw)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_of(10)
    assert peak_of(2000) < 2 * peak_of(200) + 200_000


def test_a_reason_belongs_to_the_layer_that_it_names_wherever_it_is() -> None:
    text = "[W] [TRT] b: DLA only supports slicing 4 dimensional tensors.\n" + FELL.format("a") + FELL.format("b")
    assert {one.name: list(one.rules) for one in answer_of(text).fallen} == {"a": [], "b": ["dla.slice.rank"]}


def test_a_reason_without_a_layer_of_its_own_is_a_problem() -> None:
    (problem,) = answer_of("[W] [TRT] b: DLA only supports slicing 4 dimensional tensors.\n").problems
    assert (problem.message, list(problem.names)) == ("reason.slice_rank", ["b"])


def test_an_unknown_reason_is_a_cause_with_its_own_words() -> None:
    text = "[W] [TRT] a: Strange parameter is not supported by DLA.\n" + FELL.format("a")
    (cause,) = answer_of(text).causes
    assert (cause.message, cause.operation) == ("reason.other", "Strange parameter is not supported by DLA")
    assert "Strange parameter" in str(answer_of(text))


def test_the_words_of_the_driver_are_shown() -> None:
    assert "load from memory failed" in str(answer_of("NVMEDIA_DLA :  528, ERROR: load from memory failed.\n"))


def test_rules_of_other_versions_and_boards_are_left_out() -> None:
    text = "[E] leaky: ActivationLayer (with ActivationType = LEAKY_RELU) not supported for DLA.\n" + FELL.format(
        "leaky"
    )
    newer = "[I] Selected Device: Orin\n[I] SMs: 16\n[I] TensorRT version: 8.5.2\n"
    assert list(answer_of(text).fallen[0].rules) == ["dla.activation.type", "dla.activation.type_8_1"]
    assert list(answer_of(newer + text).fallen[0].rules) == ["dla.activation.type"]


def test_layers_of_a_type_that_never_runs_on_the_dla_have_that_rule() -> None:
    (cause,) = answer_of(FELL.format("c").replace("SLICE", "CONSTANT")).causes
    assert [one.rule for one in cause.rules] == ["dla.layer.kind"]
    (cause,) = answer_of(FELL.format("s")).causes
    assert "dla.slice" in cause.remedy


def test_settings_come_from_the_command_line_and_from_the_options_that_are_printed() -> None:
    text = (
        "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] [b30] # trtexec --onnx='my model.onnx' --best "
        "--useDLACore=1\n"
        "[I] Selected Device: Xavier\n[I] SMs: 6\n"
    )
    build = answer_of(text).build
    assert (build.tensorrt, build.platform, build.dla_core, build.fallback) == ("10.3.0", "xavier-nx", 1, False)
    assert (list(build.precisions), build.model, build.outcome) == (["fp16", "int8"], "my model.onnx", "unfinished")


@pytest.mark.parametrize(
    ("digits", "version"),
    [("8502", "8.5.2"), ("8612", "8.6.12"), ("7103", "7.1.3"), ("100300", "10.3.0"), ("101600", "10.16.0"), ("x", "")],
)
def test_versions_of_trtexec(digits: str, version: str) -> None:
    assert version_of(digits) == version


@pytest.mark.parametrize(
    ("line", "severity", "text"),
    [
        ("2024-05-10T12:24:42.1234567Z [05/10/2024-12:24:42] [W] [TRT] a", "warning", "a"),
        ("#12 34.5 [05/10/2024-12:24:42] [E] a", "error", "a"),
        ("trt_1  | [V] [TRT] a", "verbose", "a"),
        ("[component_container-1] [I] [TRT] a", "info", "a"),
        ("> [I] [TRT] a", "info", "a"),
        ("[I] [TRT] [MemUsageChange] a", "info", "[MemUsageChange] a"),
        ("E0530 23:11:46.299486 1 logging.cc:43] a", "error", "a"),
        ("a: b", "", "a: b"),
    ],
)
def test_what_other_programs_put_before_a_line_is_left_out(line: str, severity: str, text: str) -> None:
    found = log_line(1, line)
    assert (found.severity, found.text) == (severity, text)


def test_names_of_engine_layers_and_segments_are_taken_apart() -> None:
    assert parts_of("Conv_0 + Relu_1 || Conv_2 + Relu_3") == ["Conv_0", "Relu_1", "Conv_2", "Relu_3"]
    assert parts_of("PWN(PWN(Sub_3, Div_14/y:0_clone_1 + (Unnamed Layer* 481) [Shuffle], Div_11))") == [
        "Sub_3",
        "Div_14/y:0",
        "(Unnamed Layer* 481) [Shuffle]",
        "Div_11",
    ]
    assert segment_of("{ForeignNode[a...b]}").layers == ["a", "b"]
    assert segment_of("{ForeignNode[a]}").is_complete


def test_a_monitor_sees_the_mebibytes_and_can_cancel(tmp_path: Path) -> None:
    steps = []

    class Monitor(dryfit.ProgressMonitor):
        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            steps.append(num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            steps.append(step)
            return step < 2

        def phase_finish(self, phase_name: str) -> None:
            steps.append("end")

    path = tmp_path / "build.txt"
    path.write_bytes(b"[V] [TRT] nothing\n" * (5 << 16))
    with pytest.raises(ExecutionError, match="canceled"):
        dryfit.explain_log(path, progress=Monitor())
    assert steps == [6, 0, 1, 2, "end"]
