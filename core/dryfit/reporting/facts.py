"""Facts of a report: the answers to all questions about one model, for one or several variants of its board.

A part of the report only reads facts; every number in it is one of an answer, and `dryfit report --json` prints the
same answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dryfit.answers.asked import Model, loaded_model
from dryfit.answers.check import CheckAnswer, check
from dryfit.answers.estimate import EstimateAnswer, estimate
from dryfit.answers.explain import ExplainAnswer, explain
from dryfit.answers.memory_use import MemoryUse, memory_use
from dryfit.attrs_classes import frozen
from dryfit.builder.refusals import ASSUMED_SCALES
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import DryfitError
from dryfit.reporting.numerics import Numerics, NumericsRequest, gather_numerics


@frozen
class Variant:
    """The model on one board, with one software version and one set of precisions.

    Attributes:
        platform: requested platform; "" for the default of the device.
        software: requested software version; "" for the newest.
        precision: requested precisions, as `fp16,int8`; "" for the default of the device.
        check: placement of the layers; None if the question could not be answered.
        estimate: estimated cost; None if the model cannot be built, or could not be asked about.
        error: why there is no placement, or no estimate; "" if there are both.
        assumes_scales: whether every tensor is assumed to have an INT8 scale, as INT8 was requested without scales.
    """

    platform: str
    software: str
    precision: str
    check: CheckAnswer | None
    estimate: EstimateAnswer | None
    error: str
    assumes_scales: bool = False

    @property
    def title(self) -> str:
        """Platform, software version and precisions, as far as they were requested or chosen."""
        found = self.check
        words = (
            self.platform or (found.platform if found else ""),
            self.software or (found.software if found else ""),
            self.precision or (",".join(found.precisions) if found else ""),
        )
        return " ".join(filter(None, words))

    @property
    def can_be_built(self) -> bool:
        """Whether a build would succeed."""
        return self.check is not None and not self.check.refusals

    @property
    def lacks_only_scales(self) -> bool:
        """Whether a build would succeed with INT8 scales, which were assumed here."""
        errors = () if self.check is None else self.check.errors
        return bool(errors) and all(one.message == ASSUMED_SCALES for one in errors)


@frozen
class ReportFacts:
    """Answers about one model.

    Attributes:
        variants: the model on each requested board, version and precision; the first one is that of all other answers.
        explained: why layers leave the device, and which edits would help; None if it was not asked.
        command: the command line that makes the same report.
        memory: what the segments need of their memory pools, and what is live at each step.
        numerics: what INT8 and the arithmetic of devices do to the numbers of the model.
        are_edits_searched: whether model edits were searched for.
    """

    variants: Sequence[Variant]
    explained: ExplainAnswer | None = None
    command: str = ""
    memory: MemoryUse = attrs.field(factory=lambda: MemoryUse([], [], []))
    numerics: Numerics = attrs.field(factory=Numerics)
    are_edits_searched: bool = True

    @property
    def check(self) -> CheckAnswer:
        """Placement of the first variant."""
        found = self.variants[0].check
        assert found is not None  # noqa: S101  `gather` raises instead
        return found

    @property
    def explanation(self) -> ExplainAnswer:
        """Why layers leave the device, and which edits would help."""
        found = self.explained
        assert found is not None  # noqa: S101  parts that need it are made where it was asked
        return found

    @property
    def estimate(self) -> EstimateAnswer | None:
        """Estimated cost of the first variant; None if it cannot be built."""
        return self.variants[0].estimate if self.variants else None

    @property
    def devices(self) -> list[str]:
        """The devices that run layers, the requested one first: each has its color by its place."""
        first = self.variants[0] if self.variants else None
        answer = None if first is None else first.check or first.estimate
        if answer is None:
            return []
        found = answer.devices if isinstance(answer, EstimateAnswer) else answer.summary.layers_by_device
        return sorted(found, key=lambda device: (device != answer.device, device))


def gather(
    model: Model,
    *,
    platforms: Sequence[str],
    software: Sequence[str],
    precisions: Sequence[str],
    options: Mapping[str, Any],
    command: str,
    numerics: NumericsRequest | None = None,
) -> ReportFacts:
    """Ask all questions about a model, but for edits, which `with_edits` searches for.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        platforms: boards, combined with the versions and precisions into variants; empty for the default.
        software: versions; empty for the newest.
        precisions: sets of precisions, such as `fp16,int8`; empty for the default.
        options: other options of `dryfit check`.
        command: the command line that makes the same report.
        numerics: samples, and sides to compare with; None for none.

    Raises:
        DryfitError: The first variant cannot be asked about. Errors of the others are part of the facts.
    """
    loaded, options = loaded_model(model, options)
    combined = list(itertools.product(platforms or [""], software or [""], precisions or [""]))
    chosen = [_given(*one, options) for one in combined]
    variants = [
        attrs.evolve(
            _variant(loaded, *one, given),
            assumes_scales=bool(given.get("assume_scales")) and not options.get("assume_scales"),
        )
        for one, given in zip(combined, chosen, strict=True)
    ]
    if variants[0].check is None:
        check(loaded, **chosen[0])  # raises what is wrong with the model or the options
    found = variants[0].check
    asked_for = numerics or NumericsRequest()
    return ReportFacts(
        variants=variants,
        explained=explain(loaded, edits=False, **chosen[0]),
        command=command,
        memory=memory_use(loaded, **chosen[0]),
        numerics=(
            Numerics()
            if found is None
            else gather_numerics(loaded, chosen[0], found, asked_for, list(_sides(found, software)))
        ),
        are_edits_searched=False,
    )


def with_edits(
    facts: ReportFacts, model: Model, options: Mapping[str, Any], progress: ProgressMonitor | None = None
) -> ReportFacts:
    """Search for model edits for the first variant, which takes most of the time of a report.

    Args:
        facts: the facts without edits.
        model: as for `gather`.
        options: as for `gather`.
        progress: monitor of the search.

    Raises:
        ExecutionError: `progress` cancelled the search.
    """
    first = facts.variants[0]
    given = _given(first.platform, first.software, first.precision, options)
    return attrs.evolve(facts, explained=explain(model, progress=progress, **given), are_edits_searched=True)


def _sides(found: CheckAnswer, software: Sequence[str]) -> Iterator[str]:
    """What the arithmetic of the device is compared with: its fallback, and the other versions of the report."""
    if found.fallback:
        yield found.fallback
    yield from (f"{found.device}@{version}" for version in software[1:])


def _given(platform: str, software: str, precision: str, options: Mapping[str, Any]) -> dict[str, Any]:
    named = {"platform": platform, "software": software, "precision": precision}
    given = {**options, **{name: value for name, value in named.items() if value}}
    if "int8" in precision.split(",") and not any(given.get(one) for one in SCALES):
        given["assume_scales"] = True  # as the estimate does, so that all answers are about the same network
    return given


SCALES = ("assume_scales", "calibration_cache", "ranges")
"""Options that say where the scales of INT8 come from."""


def _variant(model: Model, platform: str, software: str, precision: str, given: Mapping[str, Any]) -> Variant:
    placed, cost, error = None, None, ""
    try:
        placed = check(model, **given)
        cost = estimate(model, **given)
    except DryfitError as failure:
        error = str(failure)
    return Variant(platform, software, precision, placed, cost, error)
