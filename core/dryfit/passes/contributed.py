"""Passes of plugins find their places in a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dryfit.errors import UnknownNameError
from dryfit.passes.pipeline import NetworkPass, Pipeline
from dryfit.plugins import facade

if TYPE_CHECKING:
    from dryfit.plugins.contributions import PassContribution
    from dryfit.plugins.facade import Owned

    Contributed = Owned[PassContribution]


def insert_contributed(pipeline: Pipeline, contributions: Sequence[Contributed]) -> None:
    """Add passes of plugins, each before or after the one that it names, which may be another plugin's.

    Those that stand on the same side of one pass keep their order. A pass whose name is taken, or whose neighbour is
    not there, is left out and recorded as a failure of its plugin.
    """
    waiting, left_out = _by_name(pipeline, contributions)
    while ready := [one for one in waiting if _neighbour(one) in pipeline.names]:
        for one in ready:
            if one.value.before is not None:
                pipeline.insert_before(one.value.before, _network_pass(one))
        # What is inserted after a pass stands closest to it, so that the first one comes last.
        for one in reversed(ready):
            if one.value.after is not None:
                pipeline.insert_after(one.value.after, _network_pass(one))
        waiting = [one for one in waiting if one.value.name not in pipeline.names]
    left_out += [(one, _without_place(one, waiting, pipeline)) for one in waiting]
    for owner in dict.fromkeys(one.owner for one, _ in left_out):
        of_owner = [(one, why) for one, why in left_out if one.owner == owner]
        facade.fail(of_owner[0][0], "; ".join(f"pass {one.value.name!r}: {why}" for one, why in of_owner))


def _by_name(
    pipeline: Pipeline, contributions: Sequence[Contributed]
) -> tuple[list[Contributed], list[tuple[Contributed, str]]]:
    """The passes whose names nobody before them has, and the others with the reason why they are left out."""
    owners = dict.fromkeys(pipeline.names, "dryfit")
    free, taken = [], []
    for one in contributions:
        name = one.value.name
        if name in owners:
            taken.append((one, f"{owners[name]} has a pass of this name"))
        else:
            owners[name] = one.plugin
            free.append(one)
    return free, taken


def _without_place(one: Contributed, waiting: Sequence[Contributed], pipeline: Pipeline) -> str:
    neighbour = _neighbour(one)
    if any(other.value.name == neighbour for other in waiting):
        return f"its neighbour {neighbour!r} has no place either"
    return str(UnknownNameError("pass", neighbour, pipeline.names))


def _neighbour(one: Contributed) -> str:
    return one.value.before or one.value.after or ""


def _network_pass(one: Contributed) -> NetworkPass:
    return NetworkPass(one.value.name, one.value.function, one.plugin)
