"""What dryfit asks of installed packages, one typed function each. The only module that calls hooks.

Every implementation is called on its own: one that raises, or returns what the hook does not allow, is recorded for
`dryfit plugins doctor` under its hook's name, and the others go on. Where a hook and an entry-point group mean the
same, the answer has both, in the order of distribution and name.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

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
from dryfit.plugins.discovery import IMPORTERS, PASSES, PluginOwner, owner_of
from dryfit.plugins.guarded_observers import GuardedBuildObservers, GuardedRunObservers
from dryfit.plugins.hook_modules import Implementation
from dryfit.plugins.loading import described
from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.plugins.target_record import usable_target

if TYPE_CHECKING:
    import click

    from dryfit.network.layer import Layer
    from dryfit.network.layer_plugin import LayerPlugin
    from dryfit.network.network import Network
    from dryfit.quantization.quantized_group import QuantizedGroup
    from dryfit.target.target import Target
    from dryfit.target.verdict import Verdict

Value = TypeVar("Value")


@attrs.frozen
class Owned(Generic[Value]):
    """What a plugin handed over.

    Attributes:
        value: the record.
        plugin: `name version (distribution)` of the plugin, for messages.
        owner: the plugin, for `fail`.
        hook: the hook that returned it; "" where an entry point names it.
    """

    value: Value
    plugin: str
    owner: PluginOwner = attrs.field(repr=False)
    hook: str = ""


def fail(owned: Owned[Any], message: str, trace: str = "", plugins: PluginRegistry | None = None) -> None:
    """Record that what a plugin handed over cannot be used, and is left out."""
    _registry(plugins).fail(owned.owner, message, trace, owned.hook)


def is_implemented(hook: str, plugins: PluginRegistry | None = None) -> bool:
    """Whether any plugin implements a hook: where none does, its arguments need not be made."""
    return bool(_registry(plugins).hooks.implementations(hook))


def registered_targets(plugins: PluginRegistry | None = None) -> list[Owned[Target]]:
    """The targets that hooks bring. To ask for a device, call `dryfit.plugins.registry.target`."""
    return _once("register_targets", usable_target, plugins)


def registered_layers(plugins: PluginRegistry | None = None) -> list[Owned[LayerPlugin | OnnxOperator]]:
    """The layer plugins that hooks bring, and all importers of ONNX operators, of hooks and of `dryfit.importers`.

    Layer plugins of `dryfit.layers` are not among them: those are looked up by name.
    """
    entries = _registry(plugins).entries(IMPORTERS)
    return _in_order(_operators(entries, plugins), _once("register_layers", _layer_or_operator, plugins))


def onnx_operators(domain: str, op_type: str, plugins: PluginRegistry | None = None) -> list[Owned[OnnxOperator]]:
    """The importers of one operator; of `dryfit.importers` only the entries of its name are loaded."""
    entries = [one for one in _registry(plugins).entries(IMPORTERS) if one.name == f"{domain}::{op_type}"]
    hooked = (
        one for one in _once("register_layers", _layer_or_operator, plugins) if isinstance(one.value, OnnxOperator)
    )
    found = _in_order(_operators(entries, plugins), hooked)
    return [one for one in found if (one.value.domain, one.value.op_type) == (domain, op_type)]


def commands(reserved: Collection[str] = (), plugins: PluginRegistry | None = None) -> list[Owned[click.Command]]:
    """Commands of the command line, sorted by name.

    Args:
        reserved: names of dryfit's own commands. A command with one of them, or with another package's name, is left
            out and recorded.
        plugins: the installed ones by default.
    """
    by_name: dict[str, list[Owned[click.Command]]] = {}
    for owned in _once("register_commands", _command, plugins):
        by_name.setdefault(str(owned.value.name), []).append(owned)
    for name, claimed in by_name.items():
        if name in reserved or len(claimed) > 1:
            owners = " and ".join([*(["dryfit"] if name in reserved else []), *(one.plugin for one in claimed)])
            for owned in claimed:
                fail(owned, f"The command {name} is claimed by {owners}", plugins=plugins)
    return [claimed[0] for name, claimed in sorted(by_name.items()) if name not in reserved and len(claimed) == 1]


def contributed_passes(plugins: PluginRegistry | None = None) -> list[Owned[PassContribution]]:
    """Passes for the pipeline, of `dryfit.passes` and of hooks."""
    entries = _registry(plugins).entries(PASSES)
    contributed = _every("contribute_passes", _expect(PassContribution), plugins)
    return _in_order(_named(entries, _expect(PassContribution), plugins), contributed)


def claim(group: QuantizedGroup, plugins: PluginRegistry | None = None) -> Owned[GroupClaim] | None:
    """The first claim to a quantized group; None where nobody computes it."""
    return next(_each("claim_quantized_group", _expect(GroupClaim), plugins, group=group), None)


def placement_votes(
    layer: Layer, verdicts: Mapping[str, Verdict], plugins: PluginRegistry | None = None
) -> list[Owned[PlacementVote]]:
    """All wishes for the device of one layer."""
    return [*_each("vote_on_placement", _expect(PlacementVote), plugins, layer=layer, verdicts=verdicts)]


def build_observers(
    network: Network, settings: Mapping[str, Any], plugins: PluginRegistry | None = None
) -> BuildObserver:
    """One observer that tells all; one that raises is recorded and dropped."""
    found = [*_each("observe_build", _expect(BuildObserver), plugins, network=network, settings=settings)]
    return GuardedBuildObservers([(one.value, _teller(one, plugins)) for one in found])


def run_observers(engine: str, devices: Sequence[str], plugins: PluginRegistry | None = None) -> RunObserver | None:
    """One observer that tells all, or None where nobody observes, so that a run costs nothing."""
    found = [*_each("observe_run", _expect(RunObserver), plugins, engine=engine, devices=devices)]
    return GuardedRunObservers([(one.value, _teller(one, plugins)) for one in found]) if found else None


def _registry(plugins: PluginRegistry | None) -> PluginRegistry:
    return registry.installed() if plugins is None else plugins


def _teller(owned: Owned[Any], plugins: PluginRegistry | None) -> Callable[[str, str], None]:
    """A function that records what an observer raised: message and traceback."""
    return lambda message, trace: fail(owned, message, trace, plugins=plugins)


def _each(
    hook: str, prepare: Callable[[Any], Value], plugins: PluginRegistry | None, **arguments: Any
) -> Iterator[Owned[Value]]:
    """The answers to a hook, one implementation after another as they are asked for; None is no answer."""
    for one in _registry(plugins).hooks.implementations(hook):
        answer = _answer(one, plugins, lambda given: None if given is None else prepare(given), arguments)
        if answer is not None:
            yield Owned(answer, str(one.owner), one.owner, hook)


def _every(hook: str, prepare: Callable[[Any], Value], plugins: PluginRegistry | None) -> Iterator[Owned[Value]]:
    """The records of a hook whose implementations return several each."""
    for one in _registry(plugins).hooks.implementations(hook):
        for given in _answer(one, plugins, _sequence, {}) or ():
            record = _guarded(one, plugins, lambda given=given: prepare(given))  # type: ignore[misc]
            if record is not None:
                yield Owned(record, str(one.owner), one.owner, hook)


def _once(hook: str, prepare: Callable[[Any], Value], plugins: PluginRegistry | None) -> list[Owned[Value]]:
    """The records of a hook that is called once a process."""
    answers = _registry(plugins).hooks.answers
    if hook not in answers:
        answers[hook] = [*_every(hook, prepare, plugins)]
    return answers[hook]


def _answer(
    one: Implementation, plugins: PluginRegistry | None, prepare: Callable[[Any], Any], arguments: Mapping[str, Any]
) -> Any:
    return _guarded(one, plugins, lambda: prepare(one.function(*(arguments[name] for name in one.arguments))))


def _guarded(one: Implementation, plugins: PluginRegistry | None, ask: Callable[[], Any]) -> Any:
    """What a call gives; None where it raises, which is recorded."""
    try:
        return ask()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  a plugin may raise anything, even SystemExit
        message, remedy = described(error)
        _registry(plugins).fail(one.owner, message, traceback.format_exc(), one.hook, remedy)
        return None


def _named(
    entries: Iterable[EntryPoint], prepare: Callable[[Any], Value], plugins: PluginRegistry | None
) -> Iterator[Owned[Value]]:
    """What entry points name, without those that are broken."""
    for entry in entries:
        record = _registry(plugins).load(entry, prepare)
        if record is not None:
            yield Owned(record, str(owner_of(entry)), owner_of(entry))


def _in_order(*found: Iterable[Owned[Any]]) -> list[Owned[Any]]:
    return sorted((one for part in found for one in part), key=lambda one: (one.owner.distribution, one.owner.name))


def _expect(kind: type[Value]) -> Callable[[Any], Value]:
    """A function that gives back a record of one kind and refuses any other."""

    def checked(given: Any) -> Value:
        if not isinstance(given, kind):
            raise _unexpected(given, kind.__name__)
        return given

    return checked


def _operators(entries: Iterable[EntryPoint], plugins: PluginRegistry | None) -> Iterator[Owned[OnnxOperator]]:
    """The operators that entry points name; each has its entry point's name."""

    def checked(name: str) -> Callable[[Any], OnnxOperator]:
        def of_this_name(given: Any) -> OnnxOperator:
            operator = _expect(OnnxOperator)(given)
            if name != f"{operator.domain}::{operator.op_type}":
                raise PluginError(
                    "The entry point and its operator have different names",
                    found=f"{operator.domain}::{operator.op_type} in the record, {name} by the entry point",
                )
            return operator

        return of_this_name

    for entry in entries:
        yield from _named([entry], checked(entry.name), plugins)


def _sequence(given: Any) -> Sequence[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise _unexpected(given, "a list of records; an empty one for none")
    return given


def _layer_or_operator(given: Any) -> LayerPlugin | OnnxOperator:
    # What makes a layer plugin is told by its methods, so that the network's modules are not imported for this.
    if isinstance(given, OnnxOperator) or all(
        callable(getattr(given, name, None)) for name in ("output_specs", "enqueue")
    ):
        return given  # type: ignore[no-any-return]
    raise _unexpected(given, "layer plugins and OnnxOperator records")


def _command(given: Any) -> click.Command:
    import click

    if not isinstance(given, click.Command) or not given.name:
        raise _unexpected(given, "a click command with a name")
    return given


def _unexpected(given: Any, allowed: str) -> PluginError:
    return PluginError("The plugin handed over something else", found=type(given).__name__, allowed=allowed)
