"""Which layers should leave the default device? `dryfit.place` and `dryfit place`. Measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import attrs

from dryfit.answers.asked import Model, asked, quiet_log
from dryfit.answers.defaults import with_every_precision
from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.network_cost import TotalEnergy
from dryfit.answers.options import Options
from dryfit.answers.place_text import conclusion, proposal_blocks, proposal_heading, write_placement
from dryfit.answers.placement_search.changes import Change
from dryfit.answers.placement_search.objective import LowerBounds, Objective
from dryfit.answers.placement_search.proposal import PlacementOption, PlacementProposal, propose_placement
from dryfit.answers.text import Answer, Block
from dryfit.atomic_file import refuse_to_overwrite
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.errors import UnknownNameError
from dryfit.target.cost import CostEstimate, Energy

NOTE = "All times, rates and energies are estimates by the targets' formulas; nothing was measured."
MODEL = (
    "Placements are compared by the estimated cost of the segments that a build would make and of the copies between "
    "devices. The search uses a minimum cut over single layers, local steps over segments and, on a chain of layers, "
    "dynamic programming"
)


@attrs.frozen
class EstimateBasis:
    """What estimates of a device, or of copies, rest on.

    Attributes:
        of: a device, copies, or the energy of one of these.
        basis: how the values were estimated.
        source: document and section.
        fidelity: `documented`, `inferred` or `confirmed`.
    """

    of: str
    basis: str
    source: str
    fidelity: str


@attrs.frozen
class ComparedPlacement:
    """One placement that was compared, as a build would make it. Its figures are estimates.

    Attributes:
        title: what it is, and how it was found.
        is_before: whether it is what a build does by itself.
        is_chosen: whether it is the proposed placement.
        is_exact: whether its method finds the best by the method's own model.
        value: what the objective compares; less is better.
        latency_microseconds: segments and copies one after the other; None where a target estimates no time.
        error_factor: how far the latency may be off, as a factor up or down; None where that is not known.
        lower_bounds: devices whose time is one that they cannot beat.
        images_per_second: with all devices and copies at work at once on different runs; None without a time.
        energy: None where a target estimates none.
        energy_error_factor: how far the energy may be off; None where that is not known.
        layers_by_device: number of layers by device.
        segments_by_device: device to its segments; of a DLA: loadables.
        macs_by_device: device to its multiply-accumulates of one run.
        copies: of tensors between devices, in one run.
    """

    title: str
    is_before: bool
    is_chosen: bool
    is_exact: bool
    value: Amount
    latency_microseconds: Amount | None
    error_factor: float | None
    lower_bounds: Sequence[str]
    images_per_second: Amount | None
    energy: TotalEnergy | None
    energy_error_factor: float | None
    layers_by_device: Mapping[str, Count]
    segments_by_device: Mapping[str, Count]
    macs_by_device: Mapping[str, Count]
    copies: Count


@attrs.frozen(repr=False)
class PlaceAnswer(Answer):
    """The best placement that was found for an objective, between two devices.

    Attributes:
        model: what the user calls it: the path of the file, or the name of the network.
        device: the default device: layers stay there unless they are given another.
        platform: name of the platform.
        power_mode: of the board; None where the platform states none.
        software: the version whose rules hold; empty where there is one rule set.
        precisions: allowed computation types beside FP32.
        fallback: the other device that layers can run on.
        assumed: the defaults that were used, as options of the command line.
        note: that every figure is an estimate.
        objective: what the placement is the best for.
        unit: of the values that are compared.
        compared_by: the model of the comparison, and those of the search.
        bases: what the estimates rest on.
        lower_bounds: devices whose time is a lower bound, so that layers are sent there too readily; None where there
            are none, or times do not count.
        options: all placements that were compared; the first is what a build does by itself.
        changes: what the proposal changes.
        placement: layer to device, for all layers that have one of their own: the contents of the file.
        output: the file that was written; None for none.
        notes: remarks about options that were adjusted, and about memory.

    Example:
        >>> answer = dryfit.place("digits.onnx", objective="dla-coverage")
        >>> answer.after.macs_by_device
        {'DLA': 599680, 'GPU': 0}
    """

    COMMAND: ClassVar[str] = "place"

    model: str
    device: str
    platform: str
    power_mode: str | None
    software: str
    precisions: Sequence[str]
    fallback: str
    assumed: Sequence[str]
    note: str
    objective: Objective
    unit: str
    compared_by: str
    bases: Sequence[EstimateBasis]
    lower_bounds: LowerBounds | None
    options: Sequence[ComparedPlacement]
    changes: Sequence[Change]
    placement: Mapping[str, str]
    output: str | None
    notes: Sequence[str] = hidden(())

    @property
    def before(self) -> ComparedPlacement:
        """What a build does by itself."""
        return next(one for one in self.options if one.is_before)

    @property
    def after(self) -> ComparedPlacement:
        """The proposal; the same where nothing is better."""
        return next(one for one in self.options if one.is_chosen)

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """What `dryfit place` prints."""
        return proposal_blocks(self)

    def summary_line(self) -> str:
        """The answer in one line."""
        return f"{proposal_heading(self)}: {conclusion(self)}"


def place(
    model: Model,
    config: BuilderConfig | None = None,
    *,
    objective: str | Objective = Objective.LATENCY,
    output: str | Path | None = None,
    force: bool = False,
    **options: Unpack[Options],
) -> PlaceAnswer:
    """Propose devices for the layers of a model, by estimates, under the limits of loadables and memory pools.

    By its own model the proposal is never worse than what a build does by itself. Nothing is measured.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`; it stays as it is.
        config: how it would be built; None where options say it. It stays as it is.
        objective: `latency`, `throughput`, `energy` or `dla-coverage`: what the placement is chosen for.
        output: the file to write, for the option `placement`: JSON for the suffix `.json`, else rules; None for none.
        force: overwrite the output.
        options: named as the options of `dryfit place`, with the same defaults.

    Raises:
        ConfigError: options, config and model do not fit together, there are no two devices to choose between, a target
            estimates no such thing, or the output exists or cannot hold the names.
        PlacementError: a layer can run on neither device.
        NetworkError: the network is wrong; all problems are listed.
        OnnxImportError: the model is damaged or has operators that are not supported.
        UnknownNameError: there is no such device, platform, objective or word.

    Example:
        >>> answer = dryfit.place("digits.onnx", platform="agx-orin-64")
        >>> answer.after.segments_by_device
        {'GPU': 1}
    """
    if objective not in list(Objective):
        raise UnknownNameError("objective", str(objective), map(str, Objective), where="--objective")
    if output is not None:
        refuse_to_overwrite(Path(output), force=force)
    subject = asked(model, config, options, defaults=with_every_precision)
    subject.name_board()
    network, chosen = subject.network, subject.config
    with quiet_log():
        proposal = propose_placement(network, chosen, Objective(objective))
    settings, clocks = chosen.settings(network), chosen.clocks(proposal.device)
    compared = (proposal.before, proposal.after)
    memory = (warning for one in compared for warning in one.assessment.memory_warnings)
    answer = PlaceAnswer(
        model=subject.name,
        device=proposal.device,
        platform=settings["platforms"].get(proposal.device, ""),
        power_mode=None if clocks is None else clocks.name,
        software=settings["software"].get(proposal.device, ""),
        precisions=subject.precisions,
        fallback=proposal.fallback,
        assumed=list(subject.assumed),
        note=NOTE,
        objective=proposal.objective,
        unit=proposal.unit,
        compared_by=MODEL,
        bases=_bases(proposal),
        lower_bounds=proposal.lower_bounds,
        options=[_compared(one, proposal) for one in proposal.options],
        changes=proposal.changes,
        placement=dict(proposal.own_devices),
        output=None if output is None else str(output),
        notes=[*subject.notes, *dict.fromkeys(memory)],
    )
    if output is not None:
        write_placement(Path(output), network, answer)
    return answer


def _compared(option: PlacementOption, proposal: PlacementProposal) -> ComparedPlacement:
    cost, assessment = option.cost, option.assessment
    placed = [layer.device for layer in assessment.layers]
    ran = [segment.device for segment in assessment.segments]
    return ComparedPlacement(
        title=option.title,
        is_before=option is proposal.before,
        is_chosen=option is proposal.after,
        is_exact=option.is_exact,
        value=option.value,
        latency_microseconds=cost.latency_microseconds,
        error_factor=cost.latency_error,
        lower_bounds=list(cost.lower_bounds),
        images_per_second=cost.pipeline_images_per_second,
        energy=cost.energy,
        energy_error_factor=None if cost.energy is None else cost.energy_error,
        layers_by_device={device: placed.count(device) for device in sorted(set(placed))},
        segments_by_device={device: ran.count(device) for device in sorted(set(ran))},
        macs_by_device=dict(sorted(option.macs.items())),
        copies=len(cost.transfers),
    )


def _bases(proposal: PlacementProposal) -> list[EstimateBasis]:
    """How each device's figures were estimated, each way once."""
    found: dict[tuple[str, str], EstimateBasis] = {}

    def add(what: str, stated: CostEstimate | Energy, fidelity: str) -> None:
        found.setdefault((what, stated.basis), EstimateBasis(what, stated.basis, stated.source, fidelity))

    for option in proposal.options:
        parts = [(one.device, one.estimate) for one in option.cost.segments]
        parts += [("copies", one.estimate) for one in option.cost.transfers]
        for what, estimate in parts:
            if estimate is not None:
                add(what, estimate, estimate.fidelity)
                if estimate.energy is not None and option.cost.energy is not None:
                    add(f"energy of {what}", estimate.energy, estimate.fidelity)
    return list(found.values())
