"""Which edits of a model would pay on a device: each is applied to a copy, and the copy is assessed again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

from onnx import ModelProto

from dryfit.attrs_classes import frozen
from dryfit.engine.progress import ProgressMonitor, stepped
from dryfit.errors import DryfitError
from dryfit.json_names import json_names
from dryfit.onnx.editing.edit import Edit, EditChoice, all_edits, apply_edits
from dryfit.onnx.external_data import ExternalData

MOST_SINGLE_PLACES = 8
"""An edit that does not pay everywhere is tried at each of its places alone where it has at most so many. Our choice:
each is an import and an assessment."""


@frozen(order=False)
class Cost:
    """What a placement costs; the less the better, in the order of the attributes. A saving may be negative.

    Attributes:
        refused_layers: layers that the device does not take.
        loadables: segments on the device.
        border_bytes: bytes that are copied at borders between devices, types and formats; None where it is not known.
        macs_off_device: multiply-accumulates of layers that the device does not take.
    """

    refused_layers: int
    loadables: int
    border_bytes: int | None
    macs_off_device: int = 0

    @property
    def key(self) -> tuple[int, int, int]:
        """What decides: a layer that leaves costs two copies and a loadable, and is worth more than bytes."""
        return self.refused_layers, self.loadables, self.border_bytes or 0


Measure = Callable[[ModelProto], Cost]
"""Places a model on a device.

Raises:
    DryfitError: it cannot be placed, for example because a placement file names layers that it has no more.
"""


@frozen
class Proposal:
    """One or several edits, measured together.

    Attributes:
        choices: what to apply, in order.
        places: the ONNX nodes that are rewritten.
        before: cost of the model as it is.
        cost: of the edited model.
        saved: how much less than the model costs as it is; negative where it costs more.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = json_names(
        "text:apply title changes sources:source places:nodes before cost:after saved"
    )

    choices: Sequence[EditChoice]
    places: Sequence[str]
    before: Cost
    cost: Cost
    saved: Cost

    @property
    def text(self) -> str:
        """What `--apply` takes."""
        return ",".join(choice.text for choice in self.choices)

    @property
    def edits(self) -> Sequence[Edit]:
        """The edits, each once."""
        return list(dict.fromkeys(choice.edit for choice in self.choices))

    @property
    def title(self) -> str:
        """What the edits do, in a few words."""
        return "; ".join(edit.title for edit in self.edits)

    @property
    def changes(self) -> Sequence[str]:
        """What each edit makes of what, and when it cannot be done."""
        return [edit.changes for edit in self.edits]

    @property
    def sources(self) -> Sequence[str]:
        """Who recommends each edit, or why it is exact."""
        return [edit.source for edit in self.edits]


@frozen
class EditReport:
    """What was found.

    Attributes:
        cost: of the model as it is.
        proposals: edits that pay, each measured alone, the largest saving first.
        together: those, and the ones that pay once those are made, measured together; None where that is no more than
            one of them.
        unmeasured: edit id to the reason why the edited model could not be placed.
    """

    cost: Cost
    proposals: Sequence[Proposal]
    together: Proposal | None
    unmeasured: Mapping[str, str]


def propose_edits(
    model: ModelProto,
    external: ExternalData,
    measure: Measure,
    rules: Collection[str],
    shapes: Mapping[str, Sequence[int]] | None = None,
    only_nodes: Collection[str] | None = None,
    *,
    cost: Cost | None = None,
    progress: ProgressMonitor | None = None,
) -> EditReport:
    """Try every edit that may cure one of the rules that are failed.

    Args:
        model: stays as it is.
        external: where its external data may lie.
        measure: places a model.
        rules: ids of the failed rules.
        shapes: as `apply_edits` takes them.
        only_nodes: keep only edits that rewrite one of these nodes; None keeps all.
        cost: of the model as it is; measured where it is left out.
        progress: is told of each edit that is tried, and can cancel.

    Raises:
        DryfitError: the model as it is cannot be measured.
        ExecutionError: `progress` cancelled the search.
    """
    search = _Search(model, external, measure, dict(shapes or {}), only_nodes, cost or measure(model))
    return search.run([edit for edit in all_edits().values() if edit.may_cure(rules)], progress)


class _Search:
    def __init__(
        self,
        model: ModelProto,
        external: ExternalData,
        measure: Measure,
        shapes: Mapping[str, Sequence[int]],
        only_nodes: Collection[str] | None,
        before: Cost,
    ) -> None:
        self._model, self._external, self._measure, self._shapes = model, external, measure, shapes
        self._only_nodes = only_nodes
        self._before = before
        self._tried: dict[str, Proposal | None] = {}
        self._unmeasured: dict[str, str] = {}

    def run(self, edits: Sequence[Edit], progress: ProgressMonitor | None) -> EditReport:
        """Each edit alone, then together."""
        paying: list[Proposal] = []
        others: list[Proposal] = []
        for edit in stepped(edits, "Trying edits", progress):
            proposal = self._everywhere(edit)
            if proposal is None:
                continue
            if not _pays(proposal):
                proposal = self._where_it_pays(edit, proposal) or proposal
            (paying if _pays(proposal) else others).append(proposal)
        paying.sort(key=lambda proposal: (proposal.cost.key, proposal.text))
        return EditReport(self._before, paying, self._together(paying, others, progress), self._unmeasured)

    def _try(self, choices: Sequence[EditChoice]) -> Proposal | None:
        """The edits measured, once; None where they find no place, or the result cannot be placed."""
        text = ",".join(choice.text for choice in choices)
        if text not in self._tried:
            self._tried[text] = self._measured(choices)
        return self._tried[text]

    def _measured(self, choices: Sequence[EditChoice]) -> Proposal | None:
        try:
            edited = apply_edits(self._model, self._external, choices, self._shapes)
            if not all(edited.places):
                return None
            places = [name for names in edited.places for name in names]
            if self._only_nodes is not None and not set(places).intersection(self._only_nodes):
                return None
            cost = self._measure(edited.model)
        except DryfitError as error:
            self._unmeasured[",".join(choice.text for choice in choices)] = str(error)
            return None
        return Proposal(choices, places, self._before, cost, _saved(self._before, cost))

    def _everywhere(self, edit: Edit) -> Proposal | None:
        return self._try([EditChoice(edit)])

    def _where_it_pays(self, edit: Edit, everywhere: Proposal) -> Proposal | None:
        """The edit at those places where it pays alone; None where there is none."""
        if not 1 < len(everywhere.places) <= MOST_SINGLE_PLACES:
            return None
        tried = [self._try([EditChoice(edit, place)]) for place in everywhere.places]
        good = [proposal for proposal in tried if proposal is not None and _pays(proposal)]
        return self._try([choice for proposal in good for choice in proposal.choices]) if good else None

    def _together(
        self, paying: Sequence[Proposal], others: Sequence[Proposal], progress: ProgressMonitor | None
    ) -> Proposal | None:
        """The best first; each further edit that lowers the cost of what is there already."""
        best: Proposal | None = None
        for proposal in stepped([*paying, *others], "Trying edits together", progress):
            candidate = self._try([*(best.choices if best else ()), *proposal.choices])
            if candidate is not None and candidate.cost.key < (best.cost if best else self._before).key:
                best = candidate
        return best if best is not None and len(best.choices) > 1 else None


def _pays(proposal: Proposal) -> bool:
    """Whether it saves layers, or loadables without costing layers, or bytes without costing either."""
    saved = proposal.saved.key
    return saved > (0, 0, 0)


def _saved(before: Cost, after: Cost) -> Cost:
    known = before.border_bytes is not None and after.border_bytes is not None
    return Cost(
        before.refused_layers - after.refused_layers,
        before.loadables - after.loadables,
        (before.border_bytes or 0) - (after.border_bytes or 0) if known else None,
        before.macs_off_device - after.macs_off_device,
    )
