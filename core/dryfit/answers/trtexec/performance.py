"""The report of trtexec on the times of an inference, in its layout, with notes on what the times mean here.

Scripts search logs of trtexec for these lines, so their form and order are those of trtexec: the lines of averages, and
the summary without other lines between its heading and its last figure. Notes and warnings are dryfit's own.

Source: `samples/common/sampleReporting.cpp` of NVIDIA/TensorRT, releases 8.6 to 11.1, and logs of these releases.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dryfit.answers.trtexec.inference import InferenceSettings, InferenceTimes, QueryTimes
from dryfit.attrs_classes import frozen
from dryfit.estimate_text import two_digits, with_error
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.answers.estimate import EstimateAnswer

MOST_AVERAGES = 200
"""Lines of averages at the beginning and at the end of the trace; those between are omitted, as in trtexec."""

UNSTABLE_PERCENT = {8: 1.0, 10: 1.0, 11: 2.5}
"""Coefficient of variation of the compute time from which trtexec warns, by major version."""

INFO, WARNING, VERBOSE = "I", "W", "V"

Metric = Callable[[QueryTimes], float]

METRICS: Sequence[tuple[str, Metric]] = (
    ("Latency", lambda one: one.latency_ms),
    ("Enqueue Time", lambda one: one.enqueue_ms),
    ("H2D Latency", lambda one: one.h2d_ms),
    ("GPU Compute Time", lambda one: one.compute_ms),
    ("D2H Latency", lambda one: one.d2h_ms),
)
"""The figures of the summary, in its order."""

_EXPLANATIONS = (
    "Total Host Walltime: from the start of the first query after warm-up to the end of the last one.",
    "GPU Compute Time: time in which this host's CPU computes one query, whichever devices it emulates.",
    "Total GPU Compute Time: sum of the GPU Compute Time of all queries; above the wall time if streams overlap.",
    "Throughput: number of queries per second of Total Host Walltime.",
    "Enqueue Time: same as GPU Compute Time, because the call that starts a query returns with its result.",
    "H2D Latency: time to copy the inputs of one query inside this host's memory.",
    "D2H Latency: time to copy the outputs of one query inside this host's memory.",
    "Latency: sum of H2D Latency, GPU Compute Time and D2H Latency.",
)


@frozen
class ReportLine:
    """A line of a report.

    Attributes:
        severity: letter that trtexec writes before the line: I for information, W for a warning, V for verbose.
        text: text of the line; "" for an empty one.
    """

    severity: str
    text: str


@frozen
class BoardEstimate:
    """The estimate for a board, shown beside the times of this host.

    Attributes:
        board: name of the board.
        latency: estimated latency of one query, with its error.
        throughput: estimated throughput of one query after another; "" if it is not estimated.
    """

    board: str
    latency: str
    throughput: str = ""

    @classmethod
    def of(cls, answer: EstimateAnswer) -> BoardEstimate:
        """Return the totals of an estimate, with the throughput of one query after another."""
        network, throughput = answer.network, ""
        if network.latency_microseconds:
            rate = f"{two_digits(1e6 / network.latency_microseconds)} qps"
            throughput = with_error(rate, network.latency_error_factor, is_lower_bound=bool(network.lower_bounds))
            throughput = throughput.replace("at least", "at most", 1)  # of a lower bound of the time
        return cls(answer.platform or answer.device, network.latency_text, throughput)


@frozen
class MetricSummary:
    """The distribution of a figure over the queries, as trtexec computes it.

    Attributes:
        minimum: least value in ms.
        maximum: greatest value in ms.
        mean: mean in ms.
        median: median in ms.
        percentiles: percentiles in ms, in the order of the settings.
        variation_percent: standard deviation divided by the mean, in percent.
    """

    minimum: float
    maximum: float
    mean: float
    median: float
    percentiles: Sequence[float]
    variation_percent: float

    @classmethod
    def of(cls, values: Sequence[float], percentiles: Sequence[float]) -> MetricSummary:
        """Summarize at least one value."""
        ordered = sorted(values)
        mean = statistics.fmean(ordered)
        return cls(
            ordered[0],
            ordered[-1],
            mean,
            statistics.median(ordered),
            [percentile_of(ordered, one) for one in percentiles],
            100 * statistics.pstdev(ordered, mean) / mean if mean else float("inf"),
        )


def percentile_of(ordered: Sequence[float], percentile: float) -> float:
    """Return a percentile of sorted values; infinity without values.

    As in trtexec, it is one of the values: the greatest that is left when the share above the percentile is removed.
    The number of removed values is truncated after arithmetic in FP32, so that 90 % of 10 values removes one, where
    FP64 would remove none.
    """
    if not ordered:
        return float("inf")
    share = np.float32(1) - np.float32(percentile) / np.float32(100)
    removed = int(share * np.float32(len(ordered)))
    return ordered[max(len(ordered) - 1 - removed, 0)]


def performance_text(
    times: InferenceTimes,
    settings: InferenceSettings,
    *,
    host: str,
    estimate: BoardEstimate | None = None,
    api: Sequence[int] = (10, 16),
    verbose: bool = False,
) -> str:
    """Return the report as text; the arguments are those of `performance_lines`.

    Args:
        times: measured times.
        settings: settings of the measurement.
        host: description of this machine.
        estimate: estimate for a board; None for none.
        api: version of TensorRT.
        verbose: whether to include the explanations of the figures.
    """
    lines = performance_lines(times, settings, host=host, estimate=estimate, api=api)
    return "".join(f"{one.text}\n" for one in lines if verbose or one.severity != VERBOSE)


def performance_lines(
    times: InferenceTimes,
    settings: InferenceSettings,
    *,
    host: str,
    estimate: BoardEstimate | None = None,
    api: Sequence[int] = (10, 16),
) -> list[ReportLine]:
    """Return the report that trtexec prints after inference: averages, summary, warnings and explanations.

    Args:
        times: measured times.
        settings: settings of the measurement.
        host: description of this machine, such as "x86-64, 2 CPUs".
        estimate: estimate for a board, reported after the summary; None for none.
        api: version of TensorRT whose thresholds apply.
    """
    return list(_lines(times, settings, host, estimate, api[0]))


def _lines(
    times: InferenceTimes, settings: InferenceSettings, host: str, estimate: BoardEstimate | None, major: int
) -> Iterator[ReportLine]:
    if times.is_profiled:
        yield ReportLine(INFO, "The times of whole queries are not reported: measuring each layer slows them down.")
        yield ReportLine(INFO, "Add --separateProfileRun to measure the layers in a second run.")
        yield from _estimate_lines(estimate)
        return
    measured = times.measured
    yield ReportLine(
        INFO, f"Warmup completed {times.warm_up_queries} queries over {number_text(settings.warm_up_ms)} ms"
    )
    yield ReportLine(INFO, f"Timing trace has {len(measured)} queries over {number_text(times.wall_ms / 1e3)} s")
    yield ReportLine(INFO, f"All times are of this host ({host}), which emulates the devices on its CPU.")
    yield ReportLine(INFO, "They do not indicate the speed of a board.")
    if not measured:
        yield ReportLine(WARNING, "No query was measured: --iterations and --duration are 0.")
        yield from _estimate_lines(estimate)
        return
    yield from _averages(measured, settings.average_runs)
    summaries = {
        name: MetricSummary.of([metric(one) for one in measured], settings.percentiles) for name, metric in METRICS
    }
    yield from _summary(times, settings, summaries)
    yield from _estimate_lines(estimate)
    yield from _warnings(settings, summaries["GPU Compute Time"], major)
    yield ReportLine(INFO, "Explanations of the figures are printed with --verbose.")
    yield ReportLine(VERBOSE, "")
    yield ReportLine(VERBOSE, "=== Explanations of the performance metrics ===")
    for text in _EXPLANATIONS:
        yield ReportLine(VERBOSE, text)
    yield ReportLine(INFO, "")


def _averages(measured: Sequence[QueryTimes], runs: int) -> Iterator[ReportLine]:
    """Return a line per `runs` queries; queries that do not fill a line have none."""
    yield ReportLine(INFO, "")
    yield ReportLine(INFO, "=== Trace details ===")
    yield ReportLine(INFO, f"Trace averages of {runs} runs:")
    starts = range(0, len(measured) - runs + 1, runs)
    omitted = range(MOST_AVERAGES, max(len(starts) - MOST_AVERAGES, MOST_AVERAGES))
    for number, start in enumerate(starts):
        if number in omitted:
            if number == omitted[0]:
                yield ReportLine(INFO, f"... Omitting {len(omitted)} lines")
            continue
        group = measured[start : start + runs]
        compute, latency, enqueue = (
            number_text(statistics.fmean(values))
            for values in zip(*((one.compute_ms, one.latency_ms, one.enqueue_ms) for one in group), strict=True)
        )
        yield ReportLine(
            INFO,
            f"Average on {runs} runs - GPU latency: {compute} ms - Host latency: {latency} ms (enqueue {enqueue} ms)",
        )


def _summary(
    times: InferenceTimes, settings: InferenceSettings, summaries: dict[str, MetricSummary]
) -> Iterator[ReportLine]:
    count, wall_ms = len(times.measured), times.wall_ms
    throughput = count / wall_ms * 1e3 if wall_ms else float("inf")
    total_ms = summaries["GPU Compute Time"].mean * count
    yield ReportLine(INFO, "")
    yield ReportLine(INFO, "=== Performance summary ===")
    yield ReportLine(INFO, f"Throughput: {number_text(throughput)} qps")
    for name, summary in summaries.items():
        yield ReportLine(INFO, f"{name}: {_summary_text(summary, settings.percentiles)}")
    yield ReportLine(INFO, f"Total Host Walltime: {number_text(wall_ms / 1e3)} s")
    yield ReportLine(INFO, f"Total GPU Compute Time: {number_text(total_ms / 1e3)} s")


def _summary_text(summary: MetricSummary, percentiles: Sequence[float]) -> str:
    figures = [
        ("min", summary.minimum),
        ("max", summary.maximum),
        ("mean", summary.mean),
        ("median", summary.median),
        *(
            (f"percentile({number_text(percentile)}%)", value)
            for percentile, value in zip(percentiles, summary.percentiles, strict=True)
        ),
    ]
    return ", ".join(f"{name} = {number_text(value)} ms" for name, value in figures)


def _estimate_lines(estimate: BoardEstimate | None) -> Iterator[ReportLine]:
    if estimate is None:
        return
    throughput = f", throughput {estimate.throughput}" if estimate.throughput else ""
    text = f"Estimate for {estimate.board}, by formula and not measured: latency {estimate.latency}{throughput}"
    yield ReportLine(INFO, text)


def _warnings(settings: InferenceSettings, compute: MetricSummary, major: int) -> Iterator[ReportLine]:
    threshold = UNSTABLE_PERCENT.get(major, UNSTABLE_PERCENT[11])
    if compute.variation_percent > threshold:
        variation = number_text(compute.variation_percent)
        yield ReportLine(WARNING, f"* GPU compute time is unstable, with coefficient of variance = {variation}%.")
        yield ReportLine(WARNING, "  It is the time of this host's CPU: other processes and its clock change it.")
    if settings.streams > 1:
        streams = count_text(settings.streams, "stream")
        how = "share this host's CPUs" if settings.threads else "share one thread and run one after another"
        yield ReportLine(WARNING, f"* The {streams} {how}: compare Throughput rather than Latency.")


def number_text(value: float) -> str:
    """Format a number with six significant digits at most, as trtexec does: `3.01153`, `200`, `1e-05`."""
    return f"{value:.6g}"
