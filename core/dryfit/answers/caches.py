"""Show, check and compare calibration caches without running a model."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dryfit.answers.asked import load_network
from dryfit.answers.cache_answers import (
    FINDING_TITLES,
    CacheAnswer,
    CacheCheckAnswer,
    CacheDiffAnswer,
    CachedTensor,
    ChangedScale,
    finite,
)
from dryfit.answers.conditions import CACHE_DIFF_SUBJECTS, CACHE_SUBJECTS, FailCondition, counted_outcomes
from dryfit.answers.options import NetworkOptions, ShapesSaid
from dryfit.errors import CalibrationError
from dryfit.quantization.cache_comparison import compare, findings_for_model, findings_in_file
from dryfit.quantization.cache_forms import read_ranges_file, stored_in_file
from dryfit.quantization.cache_header import CacheHeader
from dryfit.quantization.calibration_state import CalibrationState
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.stored_ranges import StoredRange

PathLike = str | os.PathLike[str]


def show_cache(file: PathLike, *, form: str | None = None, state: PathLike | None = None) -> CacheAnswer:
    """Return the scale, range and origin of each tensor in a calibration cache, with the calibration algorithm.

    Args:
        file: path of the cache.
        form: form of the cache, if it cannot be detected from the contents.
        state: file of the collected statistics, which has a histogram of each tensor.

    Raises:
        CalibrationError: A file cannot be read or is corrupt, or the state has no histograms.

    Example:
        >>> dryfit.show_cache("digits.cache").algorithm
        'ENTROPY_CALIBRATION_2'
    """
    stored = read_ranges_file(Path(file), form)
    seen = {} if state is None else _histograms(Path(state))
    header = CacheHeader.parse(stored.header)
    version = None if header is None or header.version is None else ".".join(map(str, header.version))
    return CacheAnswer(
        file=Path(file),
        form=stored.form,
        header=stored.header or None,
        algorithm=None if header is None else header.algorithm.name,
        tensorrt_version=version,
        cutoff=None if header is None else header.cutoff,
        quantile=None if header is None else header.quantile,
        facts=stored.facts,
        tensors=[_tensor(entry, seen.get(entry.name, ())) for entry in stored.entries],
    )


def _histograms(state: Path) -> dict[str, Sequence[int]]:
    """The histogram of each tensor of a calibration state."""
    try:
        data = state.read_bytes()
    except OSError as error:
        raise CalibrationError(
            "The state cannot be read", where=str(state), found=error, remedy="Check the path of --state"
        ) from error
    kept = CalibrationState.from_bytes(data, Histogram, str(state), skips_nonfinite=True)
    return {name: one.shown_counts() for name, one in kept.collectors.items() if isinstance(one, Histogram)}


def _tensor(entry: StoredRange, histogram: Sequence[int]) -> CachedTensor:
    found = entry.dynamic_range
    return CachedTensor(
        name=entry.name,
        scale=None if found is None else found.scale,
        range=None if found is None else [found.minimum, found.maximum],
        origin=entry.origin.value,
        place=entry.place,
        details=entry.details,
        statistics=entry.statistics,
        histogram=histogram,
    )


def diff_caches(
    first: PathLike, second: PathLike, *, fail_on: str | Sequence[str | FailCondition] = (), form: str | None = None
) -> CacheDiffAnswer:
    """Compare the scales of two calibration caches, largest ratio first. The caches may have different forms.

    Args:
        first: path of the first cache.
        second: path of the second cache.
        fail_on: conditions, such as `"ratio>1.01,removed"`; see `CacheDiffAnswer.conditions`.
        form: form of both caches, if it cannot be detected from the contents.

    Raises:
        CalibrationError: A file cannot be read or is corrupt.

    Example:
        >>> dryfit.diff_caches("digits.cache", "minmax.cache").removed
        []
    """
    conditions = CACHE_DIFF_SUBJECTS.conditions(fail_on)
    found = compare(read_ranges_file(Path(first), form), read_ranges_file(Path(second), form))
    counts = {"changed": len(found.changed), "added": len(found.added), "removed": len(found.removed)}
    return CacheDiffAnswer(
        first=Path(first),
        second=Path(second),
        changed=[
            ChangedScale(one.tensor, one.first or None, one.second or None, finite(one.ratio)) for one in found.changed
        ],
        equal=found.equal,
        added=found.added,
        removed=found.removed,
        conditions=counted_outcomes(conditions, {"ratio": found.largest_ratio, **counts}),
    )


def check_cache(
    file: PathLike,
    model: PathLike | None = None,
    *,
    fail_on: str | Sequence[str | FailCondition] = (),
    form: str | None = None,
    shape: ShapesSaid | None = None,
) -> CacheCheckAnswer:
    """Check a calibration cache, by itself and for a model, and report all findings at once.

    Args:
        file: path of the cache.
        model: path of an ONNX model.
        fail_on: conditions, such as `"damaged,missing>2"`; see `CacheCheckAnswer.conditions`.
        form: form of the cache, if it cannot be detected from the contents.
        shape: shapes of the model's dynamic inputs.

    Raises:
        CalibrationError: The file cannot be read.
        OnnxImportError: The model is corrupt or has unsupported operators.

    Example:
        >>> [one.tensor for one in dryfit.check_cache("digits.cache", "model.onnx").findings if one.kind == "missing"]
        ['x', 'a', 'b', 'y']
    """
    conditions = CACHE_SUBJECTS.conditions(fail_on)
    stored = stored_in_file(Path(file), form)
    found = [*findings_in_file(stored)]
    if model is not None:
        digest = f"sha256:{hashlib.sha256(Path(model).read_bytes()).hexdigest()}"
        network = load_network(Path(model), NetworkOptions.said({"shape": shape} if shape else {}))
        found += findings_for_model(stored, network, digest)
    counts = Counter(one.kind for one in found)
    summary = {kind: counts[kind] for kind in FINDING_TITLES}
    return CacheCheckAnswer(
        file=Path(file),
        form=stored.form,
        model=None if model is None else os.fspath(model),
        tensors=len(stored.by_name),
        findings=found,
        summary=summary,
        conditions=counted_outcomes(conditions, {**summary, "findings": len(found)}),
    )
