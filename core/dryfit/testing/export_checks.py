"""Whether a target's exporter is sound: on random networks it writes each segment, twice with the same bytes."""

from __future__ import annotations

from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.target.target import Target
from dryfit.testing.trial_networks import make_trial


def export_problems(target: Target, precision: DataType, seed: int) -> list[str]:
    """Build the loadables of a random network twice.

    Args:
        target: installed, with an exporter.
        precision: one of `TRIAL_PRECISIONS`.
        seed: which network.
    """
    trial = make_trial(target, precision, seed)
    if not trial.kinds:
        return []
    where = f"network {seed} ({', '.join(trial.kinds)}), {precision.name}"
    try:
        first, again = (Builder().build_loadables(trial.network, trial.config) for _ in range(2))
    except Exception as error:  # noqa: BLE001  an exporter may raise anything
        return [f"{where}: {type(error).__name__}: {error}"]
    expected = [one.index for one in first.plan.segments if one.device == target.device]
    missing = [index for index in expected if index not in first.files]
    found = [f"segment {index} has no file" for index in missing]
    if first.files != again.files:
        found.append("two builds of the same network give other bytes")
    return [f"{where}: {problem}" for problem in found]
