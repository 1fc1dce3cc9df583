"""Reports about many models: a page for each, and an index that compares them and tells what changed.

The index page holds its rows as JSON too (`index.json`), with which the next run of the same folder compares itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dryfit.answers.json_data import Amount, Count, Share, hidden, plain
from dryfit.answers.text import Answer, Block, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.calibration.worker_processes import WorkerProcesses
from dryfit.engine.progress import ProgressMonitor, stepped
from dryfit.errors import ConfigError, DryfitError
from dryfit.json_names import json_names
from dryfit.plugins import registry
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.pages import index_text, write_page
from dryfit.reporting.report import report
from dryfit.short_text import count_text

PHASE = "reports"
INDEX, RECORD = "index.html", "index.json"


@frozen
class FleetModel:
    """One model of a fleet.

    Attributes:
        model: path as it was given.
        page: name of its page in the folder; "" if there is none.
        variant: board, version and precisions of its figures.
        can_be_built: whether a build would succeed.
        layers: number of layers.
        layers_leaving: number of layers that leave the device.
        macs_leaving_share: their share of the multiply-accumulates.
        latency_microseconds: estimated latency; None if it is not known.
        latency_text: estimated latency in words; "" if it is not known.
        leaving: names of the layers that leave the device.
        error: why there is no page; "" if there is one.
        changes: what changed since the last run of the same folder; empty if nothing did, or there was none.
    """

    model: str
    page: str = ""
    variant: str = ""
    can_be_built: bool = False
    layers: Count = 0
    layers_leaving: Count = 0
    macs_leaving_share: Share = 0.0
    latency_microseconds: Amount | None = None
    latency_text: str = ""
    leaving: Sequence[str] = ()
    error: str = ""
    changes: Sequence[str] = ()

    @property
    def name(self) -> str:
        """File name of the model."""
        return Path(self.model).name


@frozen(repr=False)
class FleetAnswer(Answer):
    """Reports about several models.

    Attributes:
        output: the folder.
        models: the models, in the given order.
        has_previous: whether the folder held an earlier run to compare with.
    """

    COMMAND: ClassVar[str] = "report"
    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names("output models has_previous")

    output: str
    models: Sequence[FleetModel]
    has_previous: bool = hidden(default=False)

    @property
    def failed(self) -> Sequence[FleetModel]:
        """The models without a page."""
        return [one for one in self.models if one.error]

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return a line and a table of the models."""
        yield Line(self.summary_line())
        rows = [
            (
                one.model,
                "error" if one.error else "yes" if one.can_be_built else "no",
                f"{one.layers_leaving} of {one.layers}",
                one.latency_text or "-",
                "; ".join(one.changes) or one.error or "-",
            )
            for one in self.models
        ]
        yield Table("Models", ["model", "builds", "layers leaving", "estimated latency", "changes"], rows)

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        built = sum(one.can_be_built for one in self.models)
        changed = sum(bool(one.changes) for one in self.models)
        since = f"; {changed} changed since the last run" if self.has_previous else ""
        return f"{count_text(len(self.models), 'model')}: {built} can be built{since}. Index: {self.output}/{INDEX}"


def report_all(
    models: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: ProgressMonitor | None = None,
    **options: Any,
) -> FleetAnswer:
    """Write a page for each model and an index into a folder.

    A model that cannot be read has its error in the index; the others have their pages.

    Args:
        models: paths of ONNX models, with file names that differ.
        output: the folder; it is created. Pages of the same names are overwritten.
        jobs: number of processes.
        executor: runs the work elsewhere, such as a dask client's; it is not shut down. None for `jobs` processes.
        progress: monitor that receives a step for each finished model, and can cancel.
        options: keyword arguments of `dryfit.report`.

    Raises:
        ConfigError: There are no models, two have the same file name, or the folder cannot be written.
        UnknownNameError: A device, platform or option value does not exist for any model.
        ExecutionError: `progress` cancelled the work.
    """
    paths = [os.fspath(one) for one in models]
    pages = [f"{re.sub(r'[^A-Za-z0-9._-]+', '-', Path(path).stem)}.html" for path in paths]
    twice = sorted({page for page in pages if [INDEX, *pages].count(page) > 1})
    if not paths or twice:
        raise ConfigError(
            "Reports need models whose file names differ",
            where="models",
            found=", ".join(twice or paths) or "none",
            remedy="Name at least one model; give models of the same name folders of their own",
        )
    folder = Path(output)
    previous = _previous(folder)
    calls = [(path, str(folder / page), page, options) for path, page in zip(paths, pages, strict=True)]
    made = _made(calls, executor, min(jobs, len(paths)))
    found = {one.model: one for _, one in zip(stepped(paths, PHASE, progress), made, strict=True)}
    if previous is not None:
        found = {path: _with_changes(one, previous.get(path)) for path, one in found.items()}
    rows = [found[path] for path in paths]
    write_page(folder / RECORD, json.dumps(plain(rows), indent=1))
    write_page(folder / INDEX, index_text(rows))
    return FleetAnswer(str(folder), rows, previous is not None)


# One model ------------------------------------------------------------------------------------------------------------


def _one(model: str, path: str, page: str, options: Mapping[str, Any]) -> FleetModel:
    """Write the page of a model; an error is part of the result."""
    try:
        answer = report(model, **options)
        answer.save(path)
    except DryfitError as error:
        return FleetModel(model, error=str(error))
    return _row(model, page, answer.facts)


def _row(model: str, page: str, facts: ReportFacts) -> FleetModel:
    summary, cost = facts.explanation.summary, facts.estimate
    return FleetModel(
        model=model,
        page=page,
        variant=facts.variants[0].title,
        can_be_built=facts.variants[0].can_be_built,
        layers=summary.layers,
        layers_leaving=summary.layers_leaving,
        macs_leaving_share=summary.macs_leaving_share,
        latency_microseconds=None if cost is None else cost.network.latency_microseconds,
        latency_text="" if cost is None else cost.network.latency_text,
        leaving=[one.name for one in facts.explanation.layers if one.violations],
    )


def _made(calls: Sequence[tuple[Any, ...]], executor: Executor | None, jobs: int) -> Iterator[FleetModel]:
    """The models as they are finished."""
    if executor is None and jobs < 2:
        yield from (_one(*call) for call in calls)
        return
    only_own = "*" in registry.switches.disabled
    with contextlib.ExitStack() as stack:
        if executor is None:
            executor = stack.enter_context(WorkerProcesses(jobs, registry.switch_off_foreign if only_own else None))
        waiting = {executor.submit(_one, *call): call[0] for call in calls}
        for future in as_completed(waiting):
            try:
                yield future.result()
            except BrokenExecutor as error:
                yield FleetModel(waiting[future], error=f"The process that made the report ended: {error}")
            except Exception as error:  # noqa: BLE001  whatever an executor raises for work that it lost, of any class
                yield FleetModel(
                    waiting[future], error=f"The executor lost the report: {type(error).__name__}: {error}"
                )


# The last run ---------------------------------------------------------------------------------------------------------


def _previous(folder: Path) -> dict[str, dict[str, Any]] | None:
    """The rows of the last run by model; None if there was none, or its record is not readable."""
    try:
        rows = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return {row["model"]: row for row in rows}
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _with_changes(model: FleetModel, before: Mapping[str, Any] | None) -> FleetModel:
    """The model with what changed; one that the last run did not have is new."""
    return (
        attrs.evolve(model, changes=["new"])
        if before is None
        else attrs.evolve(model, changes=list(_changes(model, before)))
    )


def _changes(model: FleetModel, before: Mapping[str, Any]) -> Iterator[str]:
    """In words; what an older record lacks is not compared."""
    if bool(before.get("error")) != bool(model.error):
        yield f"error: {model.error}" if model.error else "the error is gone"
        return
    if before.get("can_be_built", model.can_be_built) != model.can_be_built:
        yield "builds now" if model.can_be_built else "cannot be built any more"
    if before.get("variant", model.variant) != model.variant:
        yield f"{before['variant']} -> {model.variant}"
    was, now = set(before.get("leaving", model.leaving)), set(model.leaving)
    for verb, names in (("leaves", now - was), ("stays", was - now)):
        if names:
            yield f"{min(names)} {verb}" + (f", and {len(names) - 1} more" if len(names) > 1 else "")
    if before.get("latency_text", model.latency_text) != model.latency_text:
        yield f"{before['latency_text'] or 'no estimate'} -> {model.latency_text or 'no estimate'}"
