"""A lint rule: one recommendation about where quantizations stand, and what it finds in a network.

Every module of `dryfit.quantization.lint.rules` declares one:

    @lint_rule("qdq.weights.per_tensor", text=..., remedy=..., source=..., severity="warning")
    def weights_per_tensor(view: NetworkView) -> Iterator[Hit]:
        ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.quantization.lint.network_view import NetworkView

SEVERITIES = ("error", "warning", "note")
"""What a finding means: devices refuse it or compute something else; it costs accuracy or time; it is worth knowing."""

CHAPTER = "TensorRT 10 developer guide, Working with Quantized Types"
PLACEMENT = f"{CHAPTER}, Q/DQ Layer-Placement Recommendations"

Hit = tuple[Layer, Tensor, str]
"""The layer, its tensor and, in one sentence without its full stop, what was found there."""


@attrs.frozen(eq=False)
class LintRule:
    """One recommendation.

    Attributes:
        id: stable, such as `qdq.weights.per_tensor`.
        text: what is recommended, in one sentence without its full stop.
        remedy: what to do about a finding.
        source: who recommends it.
        severity: one of `SEVERITIES`.
        search: finds all places of a network that speak against it.
    """

    id: str
    text: str
    remedy: str
    source: str
    severity: str
    search: Callable[[NetworkView], Iterable[Hit]] = attrs.field(repr=False)

    def findings(self, view: NetworkView) -> list[LintFinding]:
        """What the rule finds, in the order of the network."""
        return [
            LintFinding(self, layer.name, layer.kind, tuple(layer.onnx_nodes), tensor.name, found)
            for layer, tensor, found in self.search(view)
        ]


@attrs.frozen
class LintFinding:
    """One place that speaks against a rule.

    Attributes:
        rule: the rule.
        layer: name of the layer.
        kind: its kind.
        onnx_nodes: the ONNX nodes that it comes from; empty where the network comes from elsewhere.
        tensor: name of the tensor.
        found: what was found, in one sentence without its full stop.
    """

    rule: LintRule
    layer: str
    kind: str
    onnx_nodes: tuple[str, ...]
    tensor: str
    found: str

    def __str__(self) -> str:
        return f"{self.rule.id}: layer {self.layer!r}, tensor {self.tensor!r}: {self.found}"


def lint_rule(
    id: str, *, text: str, remedy: str, source: str = PLACEMENT, severity: str = "warning"
) -> Callable[[Callable[[NetworkView], Iterable[Hit]]], LintRule]:
    """Make a function a lint rule; see `LintRule`."""
    return lambda search: LintRule(id, text, remedy, source, severity, search)
