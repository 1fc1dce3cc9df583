"""Find the layers with weight zeros that a device skips: `dryfit.find_sparsity` and `dryfit sparsity check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Unpack

import attrs

from dryfit.answers.asked import Model, asked, quiet_log
from dryfit.answers.conditions import PERCENT, SPARSITY_SUBJECTS, FailCondition, Outcome, beginnings
from dryfit.answers.defaults import with_every_precision
from dryfit.answers.json_data import hidden
from dryfit.answers.options import Options
from dryfit.answers.placement_text import defaults_line
from dryfit.answers.sparsity_layers import (
    SparsityLayer,
    SparsityQuestion,
    SparsitySummary,
    sparsity_layers,
    sparsity_summary,
)
from dryfit.answers.text import Answer, Block, Entries, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.building import design_for_assessment
from dryfit.short_text import count_text
from dryfit.target.verdict import Violation

NOTE = (
    "Savings follow the device's documentation; nothing was measured. Here all weights are "
    "multiplied, so results are those of the dense kernels, bit for bit."
)


@frozen(repr=False, kw_only=True)
class SparsityAnswer(SparsityQuestion, Answer):
    """The layers whose weight zeros a device skips, and for the others every rule that prevents it.

    Attributes:
        note: states that nothing was measured, and that results are those of dense kernels.
        layers: layers with constant weights, in network order.
        summary: totals of the network.
        conditions: results of the requested conditions, in the requested order.
        notes: remarks on options that were adjusted.

    Example:
        >>> answer = dryfit.find_sparsity("digits.onnx", device="DLA")
        >>> [layer.name for layer in answer.layers if layer.sparse]
        []
    """

    COMMAND: ClassVar[str] = "sparsity check"

    note: str = NOTE
    layers: Sequence[SparsityLayer]
    summary: SparsitySummary
    conditions: Sequence[Outcome] = ()
    notes: Sequence[str] = hidden(())

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return a table of layers, and each reason once with its layers; `verbose` adds warnings and notes."""
        variant = " ".join(filter(None, [self.platform, self.software]))
        pattern = f" (pattern {self.pattern})" if self.pattern else ", which skips no zeros"
        yield Line(f"Sparse weights of {self.model} on {self.device} {variant}{pattern}")
        yield Line(self.note)
        yield from defaults_line(self.assumed, self.overlays)
        yield Line()
        words = {True: "yes", False: "no", None: "-"}
        rows = [
            (
                one.name,
                f"{100 * one.macs_share:.1f} %",
                words[one.eligible],
                words[one.has_pattern],
                words[one.sparse],
                one.why_not,
            )
            for one in self.layers
        ]
        if rows:
            columns = ["layer", "MACs", "eligible", self.pattern or "pattern", "zeros skipped", "why not"]
            yield Table("", columns, rows)
        yield Entries("Why zeros are not skipped", self._reasons("violations"))
        if verbose:
            yield Entries("Warnings", self._reasons("warnings"))
            yield Entries("Notes", self._reasons("notes"))
        yield Line(str(self.summary))

    def summary_line(self) -> str:
        """Return a one-line summary of the counts."""
        return f"{self.model}: {self.summary}"

    def _reasons(self, severity: str) -> list[tuple[str, str, str]]:
        """Return (rule, finding, remedy) for each rule, with its first layer."""
        found: dict[str, list[tuple[str, Violation]]] = {}
        for layer in self.layers:
            for one in getattr(layer, severity):
                found.setdefault(one.rule, []).append((layer.name, one))
        reasons = []
        for rule, [(name, first), *others] in found.items():
            more = f" and {count_text(len(others), 'other layer')}" if others else ""
            reasons.append((rule, f"{first.message} ({name}{more})", first.remedy))
        return reasons


def find_sparsity(
    model: Model,
    config: BuilderConfig | None = None,
    *,
    fail_on: str | Sequence[str | FailCondition] = (),
    **options: Unpack[Options],
) -> SparsityAnswer:
    """Find the layers whose weight zeros the device skips, and the rules that the others violate. Builds nothing.

    Weights are checked in the form in which the device stores them.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        config: build settings; None to use the options.
        fail_on: conditions, such as `"dense>20%"` or a rule's id; see `SparsityAnswer.conditions`.
        options: keyword arguments named like the options of `dryfit sparsity check`. Defaults: the accelerator, all of
            its precisions, scales for every tensor, fallback to the GPU.

    Raises:
        ConfigError: The options, the config and the model conflict.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt or has unsupported operators.
        UnknownNameError: A device, platform or option value does not exist.

    Example:
        >>> dryfit.find_sparsity("digits.onnx", platform="agx-orin-64").summary.sparse_macs_share
        0.0
    """
    conditions = SPARSITY_SUBJECTS.conditions(fail_on)
    subject = asked(model, config, options, defaults=with_every_precision)
    default = TargetVariant.chosen(subject.config, subject.config.default_device_type)
    with quiet_log():
        layers = sparsity_layers(design_for_assessment(subject.network, subject.config), default)
    return SparsityAnswer(
        **attrs.asdict(SparsityQuestion.of(subject, default), recurse=False),
        layers=layers,
        summary=sparsity_summary(layers),
        conditions=[_outcome(one, layers) for one in conditions],
        notes=subject.notes,
    )


def _outcome(condition: FailCondition, layers: Sequence[SparsityLayer]) -> Outcome:
    match condition.subject:
        case "dense":
            meant = [one for one in layers if not one.sparse]
        case "ineligible":
            meant = [one for one in layers if not one.eligible]
        case "unpruned":
            meant = [one for one in layers if one.is_unpruned]
        case subject:  # a rule, or its first words; notes are not held against a layer
            meant = [
                one
                for one in layers
                if any(subject in beginnings(found.rule) for found in (*one.violations, *one.warnings))
            ]
    share = 100 * sum(one.macs_share for one in meant)
    words = f"{count_text(len(meant), 'layer')}, {share:.1f} % of the multiply-accumulates"
    return condition.outcome(share if condition.unit == PERCENT else len(meant), words)
