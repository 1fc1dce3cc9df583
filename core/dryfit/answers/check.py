"""Check where layers can run, and why not, without a build: `dryfit.check` and `dryfit check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Unpack

import attrs

from dryfit.answers.asked import Model, asked
from dryfit.answers.conditions import PERCENT, PLACEMENT_SUBJECTS, FailCondition, Outcome, beginnings
from dryfit.answers.json_data import hidden
from dryfit.answers.options import Options
from dryfit.answers.placement import LayerAnswer, Placement, placement_of
from dryfit.answers.placement_text import heading, listed_names, outcome_lines, placement_blocks, summary_line
from dryfit.answers.text import Answer, Block, bytes_text
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import LayerEdge
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.short_text import count_text


@frozen(repr=False)
class CheckAnswer(Placement, Answer):
    """The device of each layer of a model, with every rule that the layer violates.

    Attributes:
        conditions: results of the requested conditions, in the requested order.
        notes: remarks on options that were adjusted, and on memory.
        edges: tensors between the layers, without constants.

    Example:
        >>> answer = dryfit.check("digits.onnx", device="DLA", precision="fp16")
        >>> answer.summary.layers_by_device
        {'DLA': 10, 'GPU': 4}
    """

    COMMAND: ClassVar[str] = "check"

    conditions: Sequence[Outcome] = attrs.field(default=(), kw_only=True)
    notes: Sequence[str] = hidden(default=(), kw_only=True)
    edges: Sequence[LayerEdge] = hidden(default=(), kw_only=True)

    @property
    def has_failed(self) -> bool:
        """Whether at least one of the conditions holds."""
        return any(one.failed for one in self.conditions)

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the lines and tables that `dryfit check` prints."""
        return placement_blocks(self, verbose=verbose)

    def outcome(self) -> Iterator[Block]:
        """Return whether the network can be built, and what runs where."""
        return outcome_lines(self)

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{heading(self)}: {summary_line(self)}"


def check(
    model: Model,
    config: BuilderConfig | None = None,
    *,
    fail_on: str | Sequence[str | FailCondition] = (),
    **options: Unpack[Options],
) -> CheckAnswer:
    """Report where each layer of a model can run, and every rule that it violates. Builds nothing.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        config: build settings; None to use the options.
        fail_on: conditions, such as `"fallback>3%"` or a rule's id; see `CheckAnswer.conditions`.
        options: keyword arguments named like the options of `dryfit check`, with the same defaults.

    Raises:
        ConfigError: The options, the config and the model conflict. A build that would fail is reported in the answer.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt or has unsupported operators.
        UnknownNameError: A device, platform, option value or condition does not exist.

    Example:
        >>> answer = dryfit.check("digits.onnx", device="DLA", precision="fp16")
        >>> [layer.name for layer in answer.layers if layer.device == "GPU"]
        ['elu2', 'average', 'classifier/shuffle', 'softmax']
    """
    conditions = PLACEMENT_SUBJECTS.conditions(fail_on)
    subject = asked(model, config, options, needs_shapes=False, shares=True)
    found = subject.assessment
    settings = subject.config.settings(subject.network)
    placement = placement_of(subject.name, found, settings, subject.assumed, subject.network)
    return CheckAnswer(
        **placement.placement_fields,
        conditions=placement_outcomes(conditions, placement),
        notes=[*subject.notes, *found.memory_warnings],
        edges=found.edges,
    )


# Conditions -----------------------------------------------------------------------------------------------------------


def placement_outcomes(conditions: Sequence[FailCondition], answer: Placement) -> list[Outcome]:
    """Return the outcome of each condition on a placement."""
    return [condition.outcome(*_measured(condition, answer)) for condition in conditions]


def _measured(condition: FailCondition, answer: Placement) -> tuple[float, str]:
    """Return the value in the unit of the limit (sizes in bytes), and in words."""
    summary, subject = answer.summary, condition.subject
    match subject:
        case "fallback":
            return _share(condition, answer, summary.fallback_layers + summary.unplaced_layers)
        case "unplaced":
            return _share(condition, answer, summary.unplaced_layers)
        case "loadables":
            count = summary.segments_by_device.get(answer.device, 0)
            return count, f"{count} on {answer.device}"
        case "segments":
            return summary.segments, f"{summary.segments}"
        case "warnings":
            return summary.warnings, f"{summary.warnings}"
        case "refusals":
            return len(answer.refusals), f"{len(answer.refusals)}"
        case "reformats":
            count, size = summary.reformats, summary.reformat_bytes
            return size if condition.unit else count, f"{count} of {bytes_text(size)}"
    layers = [layer.name for layer in answer.layers if subject in _rule_words(layer)]
    return len(layers), f"{count_text(len(layers), 'layer')} ({listed_names(layers) or 'none'})"


def _share(condition: FailCondition, answer: Placement, count: int) -> tuple[float, str]:
    """Format a number of layers with its share of the layers on devices; shape computations are not counted."""
    total = sum(not layer.is_host_work for layer in answer.layers)
    share = 100 * count / total if total else 0.0
    return share if condition.unit == PERCENT else count, f"{count} of {total} layers ({share:.1f} %)"


def _rule_words(layer: LayerAnswer) -> set[str]:
    """Return the ids and prefixes of the rules that a layer violates, and of warnings on its own device."""
    failed = [
        one.rule
        for device, verdict in layer.verdicts.items()
        for one in (*verdict.violations, *(verdict.warnings if device == layer.device else ()))
    ]
    return {beginning for rule in failed for beginning in beginnings(rule)}
