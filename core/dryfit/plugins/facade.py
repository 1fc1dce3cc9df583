"""What dryfit asks of installed packages, one typed function each. The only module that calls hooks.

Where a hook and an entry-point group mean the same, the answer has both, in the order of distribution and name.
Targets of hooks are asked for by device, as those of entry points are: `dryfit.plugins.registry`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dryfit.errors import PluginError
from dryfit.plugins import registry
from dryfit.plugins.contributions import (
    BuildObserver,
    GroupClaim,
    OnnxOperator,
    PassContribution,
    PlacementVote,
    RunObserver,
)
from dryfit.plugins.discovery import ONNX_OPERATORS, PASSES, owner_of
from dryfit.plugins.hook_modules import Owned, unexpected
from dryfit.plugins.model_importers import record_moved_operators

if TYPE_CHECKING:
    import click

    from dryfit.network.layer import Layer
    from dryfit.network.layer_plugin import LayerPlugin
    from dryfit.network.network import Network
    from dryfit.quantization.quantized_group import QuantizedGroup
    from dryfit.target.verdict import Verdict

Value = TypeVar("Value")
Observer = TypeVar("Observer", BuildObserver, RunObserver)
Failed = Callable[[str, str], None]
"""Records a failure: message and traceback."""


def fail(owned: Owned[Any], message: str, trace: str = "") -> None:
    """Record that what a plugin handed over cannot be used, and is left out."""
    registry.fail(owned.owner, message, trace, owned.hook)


def is_implemented(hook: str) -> bool:
    """Whether any plugin implements a hook: where none does, its arguments need not be made."""
    return bool(registry.hooks.implementations(hook))


def registered_layers() -> list[Owned[LayerPlugin | OnnxOperator]]:
    """The layer plugins that hooks bring, and all importers of ONNX operators, of hooks and of `dryfit.onnx_operators`.

    Layer plugins of `dryfit.layers` are not among them: those are looked up by name.
    """
    entries = registry.entries(ONNX_OPERATORS)
    return _in_order(_operators(entries), registry.hooks.once("register_layers", _layer_or_operator))


def onnx_operators(domain: str, op_type: str) -> list[Owned[OnnxOperator]]:
    """The importers of one operator; of `dryfit.onnx_operators` only the entries of its name are loaded."""
    entries = [one for one in registry.entries(ONNX_OPERATORS) if one.name == f"{domain}::{op_type}"]
    hooked = (
        one for one in registry.hooks.once("register_layers", _layer_or_operator) if isinstance(one.value, OnnxOperator)
    )
    found = _in_order(_operators(entries), hooked)
    record_moved_operators()
    return [one for one in found if (one.value.domain, one.value.op_type) == (domain, op_type)]


def commands(reserved: Collection[str] = ()) -> list[Owned[click.Command]]:
    """Commands of the command line, sorted by name.

    Args:
        reserved: names of dryfit's own commands. A command with one of them, or with another package's name, is left
            out and recorded.
    """
    by_name: dict[str, list[Owned[click.Command]]] = {}
    for owned in registry.hooks.once("register_commands", _command):
        by_name.setdefault(str(owned.value.name), []).append(owned)
    for name, claimed in by_name.items():
        if name in reserved or len(claimed) > 1:
            owners = " and ".join([*(["dryfit"] if name in reserved else []), *(one.plugin for one in claimed)])
            for owned in claimed:
                fail(owned, f"The command {name} is claimed by {owners}")
    return [claimed[0] for name, claimed in sorted(by_name.items()) if name not in reserved and len(claimed) == 1]


def contributed_passes() -> list[Owned[PassContribution]]:
    """Passes for the pipeline, of `dryfit.passes` and of hooks."""
    entries = registry.entries(PASSES)
    contributed = registry.hooks.every("contribute_passes", _expect(PassContribution))
    return _in_order(_named(entries, _expect(PassContribution)), contributed)


def claim(group: QuantizedGroup) -> Owned[GroupClaim] | None:
    """The first claim to a quantized group; None where nobody computes it."""
    return next(registry.hooks.each("claim_quantized_group", _expect(GroupClaim), group=group), None)


def placement_votes(layer: Layer, verdicts: Mapping[str, Verdict]) -> list[Owned[PlacementVote]]:
    """All wishes for the device of one layer."""
    return [*registry.hooks.each("vote_on_placement", _expect(PlacementVote), layer=layer, verdicts=verdicts)]


def build_observers(network: Network, settings: Mapping[str, Any]) -> BuildObserver:
    """One observer that tells all; one that raises is recorded and dropped."""
    found = [*registry.hooks.each("observe_build", _expect(BuildObserver), network=network, settings=settings)]
    return GuardedBuildObservers([(one.value, _teller(one)) for one in found])


def run_observers(engine: str, devices: Sequence[str]) -> RunObserver | None:
    """One observer that tells all, or None where nobody observes, so that a run costs nothing."""
    found = [*registry.hooks.each("observe_run", _expect(RunObserver), engine=engine, devices=devices)]
    return GuardedRunObservers([(one.value, _teller(one)) for one in found]) if found else None


def _teller(owned: Owned[Any]) -> Callable[[str, str], None]:
    """A function that records what an observer raised: message and traceback."""
    return lambda message, trace: fail(owned, message, trace)


def _named(entries: Iterable[EntryPoint], prepare: Callable[[Any], Value]) -> Iterator[Owned[Value]]:
    """What entry points name, without those that are broken."""
    for entry in entries:
        record = registry.load(entry, prepare)
        if record is not None:
            yield Owned(record, str(owner_of(entry)), owner_of(entry))


def _in_order(*found: Iterable[Owned[Any]]) -> list[Owned[Any]]:
    return sorted((one for part in found for one in part), key=lambda one: (one.owner.distribution, one.owner.name))


def _expect(kind: type[Value]) -> Callable[[Any], Value]:
    """A function that gives back a record of one kind and refuses any other."""

    def checked(given: Any) -> Value:
        if not isinstance(given, kind):
            raise unexpected(given, kind.__name__)
        return given

    return checked


def _operators(entries: Iterable[EntryPoint]) -> Iterator[Owned[OnnxOperator]]:
    """The operators that entry points name; each has its entry point's name."""

    def checked(name: str) -> Callable[[Any], OnnxOperator]:
        def of_this_name(given: Any) -> OnnxOperator:
            operator = _expect(OnnxOperator)(given)
            if name != f"{operator.domain}::{operator.op_type}":
                raise PluginError(
                    "The entry point and its operator must have the same name",
                    found=f"{operator.domain}::{operator.op_type} in the record, {name} by the entry point",
                    remedy="Rename the entry point to `domain::OpType` of its operator",
                )
            return operator

        return of_this_name

    for entry in entries:
        yield from _named([entry], checked(entry.name))


def _layer_or_operator(given: Any) -> LayerPlugin | OnnxOperator:
    # What makes a layer plugin is told by its methods, so that the network's modules are not imported for this.
    if isinstance(given, OnnxOperator) or all(
        callable(getattr(given, name, None)) for name in ("output_specs", "enqueue")
    ):
        return given  # type: ignore[no-any-return]
    raise unexpected(given, "layer plugins and OnnxOperator records")


def _command(given: Any) -> click.Command:
    import click

    if not isinstance(given, click.Command) or not given.name:
        raise unexpected(given, "a click command with a name")
    return given


class _Audience(Generic[Observer]):
    """The observers that have not failed yet.

    A run may tell them from several threads: the tuple is replaced and never changed, so that each thread goes through
    the audience as it was.
    """

    def __init__(self, observers: Iterable[tuple[Observer, Failed]]) -> None:
        self.observers: tuple[tuple[Observer, Failed], ...] = tuple(observers)

    def tell(self, moment: str, *arguments: Any, whom: Callable[[Observer], bool] = lambda observer: True) -> None:
        """Call a method of each, or of some."""
        for observer, failed in self.observers:
            try:
                if not whom(observer):
                    continue
                getattr(observer, moment)(*arguments)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  a plugin may raise anything, even SystemExit
                failed(f"{moment}: {type(error).__name__}: {error}", traceback.format_exc())
                self.observers = tuple(one for one in self.observers if one[0] is not observer)


class GuardedBuildObservers(BuildObserver):
    """Tells several observers of a build."""

    def __init__(self, observers: Iterable[tuple[BuildObserver, Failed]]) -> None:
        self._audience = _Audience(observers)

    def stage_finished(self, stage: str, index: int, count: int) -> None:
        """See `BuildObserver`."""
        self._audience.tell("stage_finished", stage, index, count)

    def verdict_given(self, verdict: Any) -> None:
        """See `BuildObserver`."""
        self._audience.tell("verdict_given", verdict)

    def build_finished(self, plan: Any) -> None:
        """See `BuildObserver`."""
        self._audience.tell("build_finished", plan)


class GuardedRunObservers(RunObserver):
    """Tells several observers of runs; only those that want layers' times are told them."""

    def __init__(self, observers: Iterable[tuple[RunObserver, Failed]]) -> None:
        self._audience = _Audience(observers)
        self.wants_layer_times = any(one.wants_layer_times for one, _ in self._audience.observers)

    def run_started(self, input_shapes: dict[str, Sequence[int]]) -> None:
        """See `RunObserver`."""
        self._audience.tell("run_started", input_shapes)

    def layer_finished(self, layer: str, milliseconds: float) -> None:
        """See `RunObserver`."""
        self._audience.tell("layer_finished", layer, milliseconds, whom=lambda one: one.wants_layer_times)

    def run_finished(self, milliseconds: float) -> None:
        """See `RunObserver`."""
        self._audience.tell("run_finished", milliseconds)
