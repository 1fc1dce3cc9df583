"""The modules that implement hooks: loaded when a hook is first called, and held against the declared hooks.

pluggy alone accepts a misspelled hook silently and refuses a made-up argument without naming the package. Here either
is a failure of that plugin, which is then left out as a whole.
"""

from __future__ import annotations

import difflib
import inspect
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Generic, TypeVar

import attrs
import pluggy

from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError
from dryfit.forking import is_lost, watch_forks
from dryfit.plugins import hookspecs
from dryfit.plugins.discovery import HOOKS, PluginOwner, owner_of
from dryfit.plugins.entry_points import EntryPoints
from dryfit.plugins.loading import described

Value = TypeVar("Value")

HOOK_NAMES = tuple(name for name, function in vars(hookspecs).items() if hasattr(function, f"{hookspecs.PROJECT}_spec"))
"""The declared hooks, in their order."""


@frozen
class Owned(Generic[Value]):
    """What a plugin handed over.

    Attributes:
        value: the record.
        plugin: `name version (distribution)` of the plugin, for messages.
        owner: the plugin, to record a failure with.
        hook: the hook that returned it; "" where an entry point names it.
    """

    value: Value
    plugin: str
    owner: PluginOwner = attrs.field(repr=False)
    hook: str = ""


@frozen
class Implementation:
    """A package's implementation of a hook.

    Attributes:
        hook: the hook.
        owner: the plugin that it belongs to.
        function: what is called.
        arguments: the names of the hook's arguments that it takes.
    """

    hook: str
    owner: PluginOwner
    function: Callable[..., Any]
    arguments: Sequence[str]


class HookModules:
    """The hook modules of a registry, and what they answer.

    Every implementation is called on its own: one that raises, or returns what the hook does not allow, is recorded
    under its hook's name, and the others go on.
    """

    def __init__(self, plugins: EntryPoints) -> None:
        self._plugins = plugins
        self._begin()
        watch_forks(self)

    def _begin(self) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._owners: dict[str, PluginOwner] | None = None
        self._failed: set[PluginOwner] = set()
        self._loading = threading.RLock()

    def after_fork_in_child(self) -> None:
        """Load the modules anew in the child of a fork, where another thread was loading them."""
        if is_lost(self._loading):
            self._begin()

    @property
    def failed(self) -> frozenset[PluginOwner]:
        """The hook modules that could not be used."""
        self._load()
        return frozenset(self._failed)

    def implementations(self, hook: str) -> list[Implementation]:
        """Those of one hook, in the order of distribution and module name."""
        owners = self._load()
        found = [
            Implementation(hook, owners[one.plugin_name], one.function, one.argnames)
            for one in getattr(self._manager.hook, hook).get_hookimpls()
        ]
        return sorted(found, key=lambda one: one.owner)

    def each(self, hook: str, prepare: Callable[[Any], Value], **arguments: Any) -> Iterator[Owned[Value]]:
        """The answers to a hook, one implementation after another as they are asked for; None is no answer."""
        for one in self.implementations(hook):
            answer = self._answer(one, lambda given: None if given is None else prepare(given), arguments)
            if answer is not None:
                yield Owned(answer, str(one.owner), one.owner, hook)

    def once(self, hook: str, prepare: Callable[[Any], Value]) -> list[Owned[Value]]:
        """The records of a hook whose implementations return several each, and that is called once a process."""
        if hook not in self._plugins.answers:
            self._plugins.answers[hook] = [*self.every(hook, prepare)]
        found: list[Owned[Value]] = self._plugins.answers[hook]
        return found

    def every(self, hook: str, prepare: Callable[[Any], Value]) -> Iterator[Owned[Value]]:
        """The same, called each time."""
        for one in self.implementations(hook):
            for given in self._answer(one, _sequence, {}) or ():
                record = self._guarded(one, lambda given=given: prepare(given))  # type: ignore[misc]
                if record is not None:
                    yield Owned(record, str(one.owner), one.owner, hook)

    def _answer(self, one: Implementation, prepare: Callable[[Any], Any], arguments: Mapping[str, Any]) -> Any:
        return self._guarded(one, lambda: prepare(one.function(*(arguments[name] for name in one.arguments))))

    def _guarded(self, one: Implementation, ask: Callable[[], Any]) -> Any:
        """What a call gives; None where it raises, which is recorded."""
        try:
            return ask()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  a plugin may raise anything, even SystemExit
            message, remedy = described(error)
            self._plugins.fail(one.owner, message, traceback.format_exc(), one.hook, remedy)
            return None

    def _load(self) -> dict[str, PluginOwner]:
        """Name under which each module is registered to its owner."""
        # A build in another thread must not see a part of them. The lock can be taken again by a module that, while it
        # is loaded, asks for something that calls hooks; it then sees those that were loaded before it.
        with self._loading:
            if self._owners is None:
                self._owners = {}
                for entry in self._plugins.entries(HOOKS):
                    owner = owner_of(entry)
                    module = self._plugins.load(entry, _module)
                    if module is None or not self._register(module, owner):
                        self._failed.add(owner)
                    else:
                        self._owners[_registered_name(owner)] = owner
            return self._owners

    def _register(self, module: ModuleType, owner: PluginOwner) -> bool:
        """Register a module; False, recorded, where it does not fit the declared hooks."""
        try:
            problem = self._problem(module)
            if not problem:
                self._manager.register(module, _registered_name(owner))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  looking at a module's attributes can run code of the module
            self._plugins.fail(owner, f"{type(error).__name__}: {error}", traceback.format_exc())
            return False
        if problem:
            self._plugins.fail(owner, problem)
        return not problem

    def _problem(self, module: ModuleType) -> str:
        """What is wrong with the implementations of a module; "" where nothing is."""
        marked = {name: self._manager.parse_hookimpl_opts(module, name) for name in dir(module)}
        options = {str(one["specname"] or name): (name, one) for name, one in marked.items() if one is not None}
        if not options:
            unmarked = [name for name in HOOK_NAMES if inspect.isfunction(getattr(module, name, None))]
            hint = f"; {', '.join(unmarked)} lacks the mark" if unmarked else ""
            return f"no function of the module {module.__name__} is marked with @dryfit.hookimpl{hint}"
        for hook, (name, one) in options.items():
            if hook not in HOOK_NAMES:
                close = difflib.get_close_matches(hook, HOOK_NAMES, n=1)
                hint = f"did you mean {close[0]}?" if close else f"hooks are {', '.join(HOOK_NAMES)}"
                return f"dryfit has no hook {hook}; {hint}"
            if one["wrapper"] or one["hookwrapper"]:
                return f"{hook} is marked as a wrapper; dryfit calls each implementation on its own"
            declared = _required(getattr(hookspecs, hook))
            made_up = [argument for argument in _required(getattr(module, name)) if argument not in declared]
            if made_up:
                return f"the hook {hook} has no argument {made_up[0]}; it has {', '.join(declared) or 'none'}"
        return ""


def _required(function: Callable[..., Any]) -> list[str]:
    """The names of the arguments that a function cannot do without."""
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]


def _registered_name(owner: PluginOwner) -> str:
    return f"{owner.distribution}:{owner.name}"


def _module(loaded: Any) -> ModuleType:
    if not isinstance(loaded, ModuleType):
        raise PluginError(
            "The entry point must name a module with hooks",
            found=type(loaded).__name__,
            allowed="a module, written without `:attribute`",
            remedy="Leave `:attribute` out of the entry point",
        )
    return loaded


def _sequence(given: Any) -> Sequence[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise unexpected(given, "a list of records; an empty one for none")
    return given


def unexpected(given: Any, allowed: str) -> PluginError:
    """The error for what a plugin handed over in the place of something else."""
    return PluginError(
        "The plugin returned the wrong type",
        found=type(given).__name__,
        allowed=allowed,
        remedy="Return a value of the allowed type",
    )
