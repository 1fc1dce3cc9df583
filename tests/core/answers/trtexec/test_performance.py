"""The report in trtexec's layout, computed from chosen times."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from dryfit.answers.estimate import estimate
from dryfit.answers.trtexec.inference import InferenceSettings, InferenceTimes, QueryTimes
from dryfit.answers.trtexec.performance import (
    BoardEstimate,
    MetricSummary,
    percentile_of,
    performance_lines,
    performance_text,
)
from dryfit.estimate_text import two_digits

HOST = "x86-64, 2 CPUs"
ESTIMATE = BoardEstimate("agx-orin-64", "~690 us (within a factor of 3.6)", "~1400 qps")


def times_of(*computes: float, warm_up: int = 0, **others: object) -> InferenceTimes:
    """Queries of these compute times, each with 1 ms of copies in and 0.5 ms of copies out, one after another."""
    queries, now = [], 0.0
    for compute in computes:
        queries.append(QueryTimes(0, now, now + 1, now + 1 + compute, now + 1.5 + compute))
        now = queries[-1].end_d2h_ms
    return InferenceTimes(queries, warm_up, **others)


def report(times: InferenceTimes, estimate: BoardEstimate | None = None, **settings: object) -> str:
    return performance_text(times, InferenceSettings(**settings), host=HOST, estimate=estimate)


def test_the_report_has_the_lines_of_trtexec_in_its_order():
    text = report(times_of(9, 2, 4, 3, 3, warm_up=1), average_runs=2)
    assert text == (
        "Warmup completed 1 queries over 200 ms\n"
        "Timing trace has 4 queries over 0.018 s\n"
        "All times are of this host (x86-64, 2 CPUs), which emulates the devices on its CPU.\n"
        "They do not indicate the speed of a board.\n"
        "\n"
        "=== Trace details ===\n"
        "Trace averages of 2 runs:\n"
        "Average on 2 runs - GPU latency: 3 ms - Host latency: 4.5 ms (enqueue 3 ms)\n"
        "Average on 2 runs - GPU latency: 3 ms - Host latency: 4.5 ms (enqueue 3 ms)\n"
        "\n"
        "=== Performance summary ===\n"
        "Throughput: 222.222 qps\n"
        "Latency: min = 3.5 ms, max = 5.5 ms, mean = 4.5 ms, median = 4.5 ms, "
        "percentile(90%) = 5.5 ms, percentile(95%) = 5.5 ms, percentile(99%) = 5.5 ms\n"
        "Enqueue Time: min = 2 ms, max = 4 ms, mean = 3 ms, median = 3 ms, "
        "percentile(90%) = 4 ms, percentile(95%) = 4 ms, percentile(99%) = 4 ms\n"
        "H2D Latency: min = 1 ms, max = 1 ms, mean = 1 ms, median = 1 ms, "
        "percentile(90%) = 1 ms, percentile(95%) = 1 ms, percentile(99%) = 1 ms\n"
        "GPU Compute Time: min = 2 ms, max = 4 ms, mean = 3 ms, median = 3 ms, "
        "percentile(90%) = 4 ms, percentile(95%) = 4 ms, percentile(99%) = 4 ms\n"
        "D2H Latency: min = 0.5 ms, max = 0.5 ms, mean = 0.5 ms, median = 0.5 ms, "
        "percentile(90%) = 0.5 ms, percentile(95%) = 0.5 ms, percentile(99%) = 0.5 ms\n"
        "Total Host Walltime: 0.018 s\n"
        "Total GPU Compute Time: 0.012 s\n"
        "* GPU compute time is unstable, with coefficient of variance = 23.5702%.\n"
        "  It is the time of this host's CPU: other processes and its clock change it.\n"
        "Explanations of the figures are printed with --verbose.\n"
        "\n"
    )


def test_the_estimate_of_a_board_follows_the_summary():
    lines = report(times_of(2, 2), ESTIMATE).splitlines()
    total = lines.index("Total GPU Compute Time: 0.004 s")
    assert lines[total + 1] == (
        "Estimate for agx-orin-64, by formula and not measured: latency ~690 us (within a factor of 3.6), "
        "throughput ~1400 qps"
    )


def test_an_estimate_is_shown_with_its_error(digits_model):
    answer = estimate(digits_model, platform="agx-orin-64", precision="fp16", shape={"image": (1, 1, 8, 8)})
    shown = BoardEstimate.of(answer)
    assert (shown.board, shown.latency) == ("agx-orin-64", answer.network.latency_text)
    rate = two_digits(1e6 / answer.network.latency_microseconds)
    assert shown.throughput == f"~{rate} qps (within a factor of 3.6)"


def test_the_throughput_of_a_lower_bound_is_an_upper_bound():
    facts = {"latency_microseconds": 500.0, "latency_error_factor": None, "latency_text": "at least 500 us"}
    answer = SimpleNamespace(platform="", device="GPU", network=SimpleNamespace(lower_bounds=["GPU"], **facts))
    assert BoardEstimate.of(answer) == BoardEstimate("GPU", "at least 500 us", "at most 2,000 qps")
    answer.network.latency_microseconds, answer.network.latency_text = None, "none"
    assert BoardEstimate.of(answer) == BoardEstimate("GPU", "none")


def test_queries_that_do_not_fill_a_line_of_averages_have_none():
    assert report(times_of(*[2] * 25)).count("Average on 10 runs") == 2
    assert report(times_of(*[2] * 9)).count("Average on 10 runs") == 0


def test_a_long_trace_shows_its_beginning_and_its_end():
    text = report(times_of(*range(1, 502)), average_runs=1)
    assert text.count("Average on 1 runs") == 400
    assert "... Omitting 101 lines\n" in text
    assert re.search(r"GPU latency: 200 ms .*\n\.\.\. Omitting 101 lines\n.*GPU latency: 302 ms", text)
    assert "Omitting" not in report(times_of(*range(1, 401)), average_runs=1)


@pytest.mark.parametrize(
    ("count", "percentile", "expected"),
    [
        (10, 90, 8),  # 1 - 0.9 is more than 0.1 in FP32, and less in FP64
        (10, 95, 9),
        (100, 99, 99),
        (100, 95, 94),
        (1000, 99, 990),
        (10, 0, 0),
        (10, 100, 9),
        (1, 50, 0),
        (4, 50, 1),
    ],
)
def test_percentiles_are_those_of_trtexec(count, percentile, expected):
    assert percentile_of(list(range(count)), percentile) == expected


def test_no_value_has_no_percentile():
    assert percentile_of([], 50) == float("inf")


def test_one_query_has_all_figures():
    summary = MetricSummary.of([2.0], (50, 99))
    assert summary == MetricSummary(2, 2, 2, 2, [2, 2], 0)
    text = report(times_of(2), percentiles=(12.5,))
    assert "Latency: min = 3.5 ms, max = 3.5 ms, mean = 3.5 ms, median = 3.5 ms, percentile(12.5%) = 3.5 ms" in text


def test_no_percentiles_are_possible():
    assert "median = 2 ms\n" in report(times_of(2), percentiles=())


def test_queries_without_copies_have_copies_of_no_time():
    query = QueryTimes(0, 0.0, 0.0, 2.0, 2.0)
    assert "H2D Latency: min = 0 ms, max = 0 ms" in report(InferenceTimes([query]))


def test_no_query_is_reported_as_such():
    text = report(InferenceTimes([]), ESTIMATE)
    assert "Timing trace has 0 queries over 0 s\n" in text
    assert "No query was measured" in text
    assert "Estimate for agx-orin-64" in text
    assert "Performance summary" not in text


def test_times_with_measured_layers_are_not_reported():
    text = report(times_of(2, 2, is_profiled=True))
    assert "--separateProfileRun" in text
    assert "Throughput" not in text


def test_severities_are_those_that_trtexec_writes():
    lines = performance_lines(times_of(1, 9), InferenceSettings(streams=2), host=HOST)
    assert {one.severity for one in lines} == {"I", "W", "V"}
    warnings = [one.text for one in lines if one.severity == "W"]
    assert warnings[-1] == (
        "* The 2 streams share one thread and run one after another: compare Throughput rather than Latency."
    )
    threads = performance_lines(times_of(1, 9), InferenceSettings(streams=2, threads=True), host=HOST)
    assert any("share this host's CPUs" in one.text for one in threads)
    verbose = performance_text(times_of(1), InferenceSettings(), host=HOST, verbose=True)
    assert "=== Explanations of the performance metrics ===" in verbose


@pytest.mark.parametrize(("api", "warns"), [((8, 6), True), ((10, 16), True), ((11, 1), False)])
def test_unstable_times_are_those_of_the_version(api, warns):
    lines = performance_lines(times_of(98, 102), InferenceSettings(), host=HOST, api=api)
    assert any("unstable" in one.text for one in lines) == warns


def test_the_summary_is_read_as_scripts_read_logs():
    """The lines of the summary follow its heading without others between, as the engine explorer requires."""
    lines = [f"[11/23/2026-10:00:00] [{one.severity}] {one.text}" for one in _lines_with_estimate()]
    start = next(number for number, line in enumerate(lines) if "=== Performance summary ===" in line)
    found = {}
    for line in lines[start + 1 :]:
        pair = re.fullmatch(r"\[\d+/\d+/\d+-\d+:\d+:\d+\] \[I\] ([\w ]+): (.*)", line)
        if pair is None:
            break
        found[pair[1]] = [float(one) for one in re.findall(r"(?:= |^)([\d.e+-]+)", pair[2])]
    assert list(found)[:8] == [
        "Throughput",
        "Latency",
        "Enqueue Time",
        "H2D Latency",
        "GPU Compute Time",
        "D2H Latency",
        "Total Host Walltime",
        "Total GPU Compute Time",
    ]
    assert found["Latency"] == [3.5, 5.5, 4.5, 4.5, 5.5, 5.5, 5.5]


def _lines_with_estimate():
    return performance_lines(times_of(2, 4, 3, 3), InferenceSettings(), host=HOST, estimate=ESTIMATE)
