"""Propose which layers to move to another device, by estimates: `dryfit.place` and `dryfit place`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

from dryfit.answers.asked import Model, asked, quiet_log
from dryfit.answers.defaults import with_every_precision
from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.network_cost import TotalEnergy
from dryfit.answers.options import Options
from dryfit.answers.place_text import outcome_text, proposal_blocks, proposal_heading, write_placement
from dryfit.answers.placement_search.changes import Change
from dryfit.answers.placement_search.objective import LowerBounds, Objective
from dryfit.answers.placement_search.proposal import PlacementOption, PlacementProposal, propose_placement
from dryfit.answers.text import Answer, Block
from dryfit.atomic_file import refuse_to_overwrite
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.errors import UnknownNameError
from dryfit.target.cost import CostEstimate, Energy

NOTE = "All times, rates and energies are estimates by the targets' formulas; nothing was measured."
MODEL = (
    "Placements are compared by the estimated cost of the segments that a build would make and of the copies between "
    "devices. The search uses a minimum cut over single layers, local steps over segments and, on a chain of layers, "
    "dynamic programming"
)


@frozen
class EstimateBasis:
    """The basis of the estimates for a device or for copies.

    Attributes:
        of: subject of the estimates: a device, copies, or the energy of one of these.
        basis: how the values were estimated.
        source: document and section.
        fidelity: `documented`, `inferred` or `confirmed`.
    """

    of: str
    basis: str
    source: str
    fidelity: str


@frozen
class ComparedPlacement:
    """One of the compared placements, as a build would realize it. All values are estimates.

    Attributes:
        title: description of the placement, and how it was found.
        is_before: whether this is the default placement of a build.
        is_chosen: whether it is the proposed placement.
        is_exact: whether the search method finds the optimum of its own model.
        value: value of the objective; lower is better.
        latency_microseconds: latency with segments and copies run sequentially; None if a target does not estimate
            time.
        error_factor: error of the latency, as a factor up or down; None if unknown.
        lower_bounds: devices whose time is a lower bound.
        images_per_second: throughput with all devices and copies working at once on different runs; None without a
            time.
        energy: energy per run; None if a target does not estimate energy.
        energy_error_factor: error of the energy, as a factor; None if unknown.
        layers_by_device: number of layers by device.
        segments_by_device: number of segments by device; for a DLA, loadables.
        macs_by_device: multiply-accumulates per run by device.
        copies: number of tensor copies between devices per run.
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


@frozen(repr=False)
class PlaceAnswer(Answer):
    """The best placement found for an objective, between two devices.

    Attributes:
        model: path of the model file, or name of the network.
        device: default device; layers stay on it unless another device is assigned.
        platform: name of the platform.
        power_mode: power mode of the board; None if the platform has none.
        software: software version whose rules apply; empty if the device has a single rule set.
        precisions: allowed computation types besides FP32.
        fallback: second device that can run layers.
        overlays: active overlays, each with its board and a digest.
        assumed: defaults that were applied, as command-line options.
        note: states that every value is an estimate.
        objective: objective of the optimization.
        unit: unit of the compared values.
        compared_by: model used for the comparison, and the models used for the search.
        bases: bases of the estimates.
        lower_bounds: devices whose time is a lower bound, so that too many layers are moved to them; None if there are
            none, or if time is not part of the objective.
        options: all compared placements; the first is the default placement of a build.
        changes: changes that the proposal makes.
        placement: device by layer, for all layers with a device of their own: the contents of the file.
        output: file that was written; None for none.
        notes: remarks on options that were adjusted, and on memory.

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
    overlays: Sequence[str]
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
        """The default placement of a build."""
        return next(one for one in self.options if one.is_before)

    @property
    def after(self) -> ComparedPlacement:
        """The proposed placement; the default placement if none is better."""
        return next(one for one in self.options if one.is_chosen)

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit place` prints."""
        return proposal_blocks(self)

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{proposal_heading(self)}: {outcome_text(self)}"


def place(
    model: Model,
    config: BuilderConfig | None = None,
    *,
    objective: str | Objective = Objective.LATENCY,
    output: str | Path | None = None,
    force: bool = False,
    **options: Unpack[Options],
) -> PlaceAnswer:
    """Propose a device for each layer of a model, by estimates, within the limits of loadables and memory pools.

    By its own model, the proposal is never worse than the default placement of a build. Nothing is measured.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`; it is not modified.
        config: build settings, which are not modified; None to use the options.
        objective: objective to optimize: `latency`, `throughput`, `energy` or `dla-coverage`.
        output: path of the file to write for the option `placement`: JSON for the suffix `.json`, else rules. None for
            none.
        force: whether to overwrite the output.
        options: keyword arguments named like the options of `dryfit place`, with the same defaults.

    Raises:
        ConfigError: The options, the config and the model conflict, there are no two devices to choose between, a
            target does not estimate the objective, or the output exists or cannot represent the names.
        PlacementError: A layer can run on neither device.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt or has unsupported operators.
        UnknownNameError: A device, platform, objective or option value does not exist.

    Example:
        >>> answer = dryfit.place("digits.onnx", platform="agx-orin-64")
        >>> answer.after.segments_by_device
        {'GPU': 1}
    """
    if objective not in list(Objective):
        raise UnknownNameError("objective", str(objective), map(str, Objective), where="--objective")
    if output is not None:
        refuse_to_overwrite(Path(output), force=force)
    subject = asked(model, config, options, defaults=with_every_precision).on_named_board()
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
        overlays=list(settings.get("overlays", ())),
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
    """Return the basis of each device's estimates, without duplicates."""
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
