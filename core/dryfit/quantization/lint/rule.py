"""How a lint rule is declared, and what one finds.

A rule is a recommendation about where quantizations stand. Its finder gets the `NetworkView` and gives each place that
speaks against it:

    @lint_rule("qdq.weights.per_tensor", text=..., remedy=..., source=..., severity="warning")
    def weights_per_tensor(view: NetworkView) -> Iterator[Hit]:
        ...

The modules beside this one have the rules, by what they look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor
from dryfit.quantization.lint.network_view import NetworkView
from dryfit.rule import Rule

SEVERITIES = ("error", "warning", "note")
"""What a finding means: devices refuse it or compute something else; it costs accuracy or time; it is worth knowing."""

CHAPTER = "TensorRT 10 developer guide, Working with Quantized Types"
PLACEMENT = f"{CHAPTER}, Q/DQ Layer-Placement Recommendations"

Hit = tuple[Layer, Tensor, str]
"""The layer, its tensor and, in one sentence without its full stop, what was found there."""


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

    rule: Rule
    layer: str
    kind: str
    onnx_nodes: tuple[str, ...]
    tensor: str
    found: str

    def __str__(self) -> str:
        return f"{self.rule.id}: layer {self.layer!r}, tensor {self.tensor!r}: {self.found}"


def lint_rule(
    id: str, *, text: str, remedy: str, source: str = PLACEMENT, severity: str = "warning"
) -> Callable[[Callable[[NetworkView], Iterable[Hit]]], Rule]:
    """Make a function the finder of a rule; `severity` is one of `SEVERITIES`."""
    return lambda finder: Rule(id, text, source, remedy, finder=finder, severity=severity)
