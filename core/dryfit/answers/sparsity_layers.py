"""Records of layers whose weight zeros a device skips or could skip, shared by all answers about sparsity."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.answers.asked import Asked
from dryfit.answers.json_data import Count, Share
from dryfit.answers.options import PRECISION_FLAGS
from dryfit.answers.placement import PlacementHeading
from dryfit.attrs_classes import frozen
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.builder.design import Design
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.builder.sparse_weights import LayerSparsity, network_sparsity
from dryfit.short_text import count_text
from dryfit.target.verdict import Violation


@frozen(kw_only=True)
class SparsityLayer:
    """A layer with constant weights.

    Attributes:
        name: name of the layer in the network.
        kind: kind of the layer.
        onnx_nodes: names of the ONNX nodes that the layer was imported from.
        device: device that runs the layer; None for an unplaced layer.
        asked: device whose rules were checked; None if no device skips zeros.
        macs: multiply-accumulates per run, including zeros.
        macs_share: share of the multiply-accumulates of all layers with weights.
        eligible: whether the zeros of other weights in this shape would be skipped.
        has_pattern: whether the stored weights have the pattern; None if not applicable.
        sparse: whether the device that runs the layer skips its zeros.
        violations: why zeros are not skipped.
        warnings: concerns that do not change the result.
        notes: further information.
    """

    name: str
    kind: str
    onnx_nodes: Sequence[str]
    device: str | None
    asked: str | None
    macs: Count
    macs_share: Share
    eligible: bool
    has_pattern: bool | None
    sparse: bool
    violations: Sequence[Violation]
    warnings: Sequence[Violation]
    notes: Sequence[Violation]

    @property
    def is_unpruned(self) -> bool:
        """Whether the position of the zeros is the only reason that they are not skipped."""
        return self.eligible and not self.has_pattern

    @property
    def why_not(self) -> str:
        """Why zeros are not skipped, by the last words of the rule ids."""
        words = [one.rule.rpartition(".")[2] for one in self.violations]
        if self.asked is None:
            words.append(f"{self.device or 'no device'} does not skip zeros")
        elif self.device != self.asked:
            words.append(f"runs on {self.device or 'no device'}")
        return ", ".join(words)


@frozen(kw_only=True)
class SparsitySummary:
    """Counts over a network.

    Attributes:
        layers: number of layers with constant weights.
        eligible: number of layers whose zeros could be skipped.
        unpruned: number of eligible layers whose weights do not have the pattern.
        sparse: number of layers whose zeros are skipped.
        macs: multiply-accumulates per run, including zeros.
        eligible_macs_share: share of multiply-accumulates in eligible layers.
        sparse_macs_share: share of multiply-accumulates in layers whose zeros are skipped.
    """

    layers: Count
    eligible: Count
    unpruned: Count
    sparse: Count
    macs: Count
    eligible_macs_share: Share
    sparse_macs_share: Share

    def __str__(self) -> str:
        return (
            f"Zeros are skipped in {self.sparse} of {count_text(self.layers, 'layer')} with weights, "
            f"{100 * self.sparse_macs_share:.1f} % of the multiply-accumulates; {self.eligible} are eligible "
            f"({100 * self.eligible_macs_share:.1f} %), {self.unpruned} of them not pruned"
        )


@frozen(kw_only=True)
class SparsityQuestion(PlacementHeading):
    """The settings of a question about sparse weights.

    Attributes:
        assumed: defaults that were applied, as command-line options.
        pattern: sparsity pattern, such as 2:4; None if the device does not skip zeros.
    """

    assumed: Sequence[str]
    pattern: str | None

    @classmethod
    def of(cls, subject: Asked, default: TargetVariant) -> SparsityQuestion:
        """Resolve the settings of a question about a model."""
        config, sparsity = subject.config, default.target.sparsity
        said = None if subject.options is None else subject.options.precision
        return cls(
            model=subject.name,
            device=default.device,
            platform=default.platform.name,
            software=default.software_text,
            precisions=said or [word for word, flag in PRECISION_FLAGS.items() if config.get_flag(BuilderFlag[flag])],
            fallback=config.fallback_device,
            overlays=config.overlay_labels,
            assumed=subject.assumed,
            pattern=None if sparsity is None else sparsity.pattern.text,
        )


def sparsity_layers(design: Design, default: TargetVariant) -> list[SparsityLayer]:
    """Return the sparsity of each layer with weights.

    Args:
        design: devices and types of the layers.
        default: target whose rules apply to layers on devices that do not skip zeros.
    """
    found = network_sparsity(design, default)
    total = sum(one.macs for one in found)
    return [_layer(one, total) for one in found]


def _layer(one: LayerSparsity, total: int) -> SparsityLayer:
    verdict = one.verdict
    return SparsityLayer(
        name=one.layer,
        kind=one.kind,
        onnx_nodes=one.onnx_nodes,
        device=one.device or None,
        asked=one.asked,
        macs=one.macs,
        macs_share=one.macs / total if total else 0.0,
        eligible=one.is_eligible,
        has_pattern=one.has_pattern,
        sparse=one.is_sparse,
        violations=() if verdict is None else verdict.violations,
        warnings=() if verdict is None else verdict.warnings,
        notes=() if verdict is None else verdict.notes,
    )


def sparsity_summary(layers: Sequence[SparsityLayer]) -> SparsitySummary:
    """Return the counts over the layers."""
    macs = sum(one.macs for one in layers)
    return SparsitySummary(
        layers=len(layers),
        eligible=sum(one.eligible for one in layers),
        unpruned=sum(one.is_unpruned for one in layers),
        sparse=sum(one.sparse for one in layers),
        macs=macs,
        eligible_macs_share=sum(one.macs for one in layers if one.eligible) / macs if macs else 0.0,
        sparse_macs_share=sum(one.macs for one in layers if one.sparse) / macs if macs else 0.0,
    )
