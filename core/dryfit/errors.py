"""The exception hierarchy.

All exceptions share one base class, so that `except DryfitError` catches everything that a user can cause. A message
states where the error is, what was found, what is allowed, which rule and source apply, and what to do; each of these
is also an attribute, so that tools need not parse text. Refusals inside the API (a layer that cannot run on a device)
are records, not exceptions: see `dryfit.target.verdict`.
"""

from __future__ import annotations

import copyreg
import difflib
import functools
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

DryfitErrorT = TypeVar("DryfitErrorT", bound="DryfitError")


class DryfitError(Exception):
    """An error caused by the user's input, configuration or environment.

    Example:
        >>> raise DryfitError("The kernel is too large", where="layer 'conv1'", found="33x33", allowed="1 to 32")
        Traceback (most recent call last):
        ...
        dryfit.errors.DryfitError: layer 'conv1': The kernel is too large (found 33x33; allowed: 1 to 32)
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        found: object = None,
        allowed: object = None,
        source: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.message = message
        self.where = where
        self.found = found
        self.allowed = allowed
        self.source = source
        self.remedy = remedy
        super().__init__(self._text())

    def __reduce__(self) -> tuple[Any, ...]:
        # Without this a subclass with arguments of its own could not come back from another process.
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]

    @property
    def description(self) -> str:
        """The message with its place and facts, without the remedy."""
        facts = [
            *([f"found {self.found}"] if self.found is not None else []),
            *([f"allowed: {self.allowed}"] if self.allowed is not None else []),
            *([f"source: {self.source}"] if self.source is not None else []),
        ]
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({'; '.join(facts)})" if facts else text

    def _text(self) -> str:
        return f"{self.description}. {self.remedy}" if self.remedy else self.description


def described_failure(error: BaseException) -> str:
    """Describe an exception from plugin code in one line, with its location: `KeyError: 'x' (acme.py:12)`."""
    place, text = place_of_failure(error), failure_line(error).removesuffix(":")
    return f"{text} ({place})" if place else text


def failure_line(error: BaseException) -> str:
    """Describe an exception from plugin code in one line, with the closest name if a name is unknown."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, DryfitError):
        # The closest name belongs to what was found; other remedies are for the users of the plugin.
        text = str(error) if isinstance(error, UnknownNameError) else error.description
    line = (text.strip().splitlines() or [type(error).__name__])[0]
    guess = _closest_keyword(error)
    return f"{line}. Did you mean {guess!r}?" if guess else line


def place_of_failure(error: BaseException) -> str:
    """Return `file:line` of the code that raised, outside of dryfit, numpy and Python; "" for none.

    These are the frames that the author of a plugin can change.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _is_of_a_plugin(str(frame.f_globals.get("__name__", "")))
    ]
    if not frames and error.__cause__ is not None:
        return place_of_failure(error.__cause__)
    return "{}:{}".format(*frames[-1]) if frames else ""


def plugin_traceback(error: BaseException) -> str:
    """Return the traceback from the first frame of a plugin, without the import frames before it."""
    found: BaseException | None = error
    while found is not None:
        frame = found.__traceback__
        while frame is not None and not _is_of_a_plugin(str(frame.tb_frame.f_globals.get("__name__", ""))):
            frame = frame.tb_next
        if frame is not None:
            return "".join(traceback.format_exception(type(found), found, frame))
        found = found.__cause__
    return "".join(traceback.format_exception(error))


def _is_of_a_plugin(module: str) -> bool:
    package = module.partition(".")[0]
    return package not in {"dryfit", "numpy", "numba", "attr", "attrs"} and package not in sys.stdlib_module_names


def _closest_keyword(error: BaseException) -> str:
    """Return the parameter closest to an unexpected keyword argument; "" for other errors."""
    found = re.search(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'", str(error))
    if not isinstance(error, TypeError) or found is None:
        return ""
    name = found[1].removesuffix(".__init__").rpartition(".")[2]
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        called = frame.f_locals.get(name, frame.f_globals.get(name))
        if callable(called):
            close = difflib.get_close_matches(found[2], inspect.signature(called).parameters, n=1)
            return close[0] if close else ""
    return ""


def one_error(message: str, errors: Sequence[DryfitErrorT]) -> DryfitErrorT:
    """Combine several errors into one: the only error, or an error of the first one's class that lists all of them.

    Args:
        message: summary, used for several errors.
        errors: errors to combine; at least one.
    """
    if len(errors) == 1:
        return errors[0]
    return type(errors[0])(f"{message}:" + "".join(f"\n  {error}" for error in errors))


class NetworkError(DryfitError):
    """A network, layer or tensor is invalid: a parameter, a shape, a type or a connection."""


class UnfinishedLayerError(NetworkError):
    """A layer does not fit its inputs, and a parameter that is set later can fix that.

    The builder methods add such a layer nevertheless; the error is raised when the shape of its outputs is requested.
    """


class ModelImportError(DryfitError):
    """A model cannot be imported: the file is corrupt, or has unsupported operators."""


class OnnxImportError(ModelImportError):
    """An ONNX model cannot be imported."""


class ConfigError(DryfitError):
    """A builder config has invalid or conflicting settings."""


class PlacementError(DryfitError):
    """Layers cannot run on their assigned device, and fallback is disabled. Lists all of them."""


class BuildError(DryfitError):
    """A valid network could not be built into an engine."""


class EngineFileError(DryfitError):
    """An engine file is corrupt, truncated or foreign, or its manifest does not match its contents."""


class CalibrationError(DryfitError):
    """Ranges cannot be computed: a value is not finite, a state is corrupt, or parts do not belong together."""


class ExecutionError(DryfitError):
    """An engine received inputs that it cannot accept: a missing name, a wrong type or a wrong shape."""


class PluginError(DryfitError):
    """A plugin is missing or broken, or declares something that the interface does not allow."""


class UnknownNameError(DryfitError):
    """An unknown name, with the existing names and the closest one.

    Args:
        what: kind of the name.
        name: unknown name.
        known: existing names.
        where: as in `DryfitError`.
        told: summary of the existing names that replaces their list if they are too many; the closest few are named.
    """

    def __init__(
        self, what: str, name: str, known: Iterable[str], *, where: str | None = None, told: str | None = None
    ) -> None:
        self.name = name
        self.known = sorted(known)
        lowered = {candidate.lower(): candidate for candidate in self.known}
        asked = str(name).lower()  # what is no text reaches this, too
        begin = [candidate for candidate in lowered if asked and candidate.startswith(f"{asked}_")]
        end = [candidate for candidate in lowered if asked and candidate.endswith(f"_{asked}")]
        close = difflib.get_close_matches(asked, begin or end or lowered, n=1 if told is None else 3) or begin or end
        guess = f"Did you mean {lowered[close[0]]!r}?" if close else None
        if close[1:] and told is not None:
            guess = f"{guess} Also similar: {', '.join(repr(lowered[one]) for one in close[1:3])}"
        super().__init__(
            f"Unknown {what}: {name!r}",
            where=where,
            allowed=told or ", ".join(self.known) or "none registered",
            remedy=guess or ("Use one of these names" if self.known else None),
        )


_MOST_LISTED_ATTRIBUTES = 25


class MissingAttributeError(UnknownNameError):
    """The facts about a missing attribute of an object.

    Args:
        owner: class or module.
        name: name of the attribute.
        known: names that exist, or that can be set.
        is_set: whether the attribute was set rather than read.
        remedy: what to use instead, for a name known from TensorRT; None: the closest name is suggested.
        where: as in `DryfitError`.
    """

    def __init__(
        self,
        owner: str,
        name: str,
        known: Iterable[str],
        *,
        is_set: bool = False,
        remedy: str | None = None,
        where: str | None = None,
    ) -> None:
        names = sorted(known)
        told = f"{len(names)} names; call dir() to list them" if len(names) > _MOST_LISTED_ATTRIBUTES else None
        super().__init__("attribute", name, names, where=where, told=told)
        self.message = f"{owner} has no attribute {name!r}{' that can be set' if is_set else ''}"
        if remedy is not None:
            self.allowed, self.remedy = None, remedy
        self.args = (self._text(),)
        self.name = name  # again: every `AttributeError` that is not given one sets it to None


class UnknownSettingError(MissingAttributeError, AttributeError):  # type: ignore[misc]  # both have a name
    """An attribute was set that does not exist or that cannot be set."""

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments, state = super().__reduce__()
        return make, arguments, {**state, "name": self.name}


class UnknownAttributeError(AttributeError):
    """An attribute was read that does not exist; `facts` contains the same facts as `UnknownNameError`.

    It is not a `DryfitError`: if a plugin misspells an attribute, the plugin fails, not the user's input. The facts are
    computed on first access, because `hasattr` and `getattr` with a default raise this error often and discard it.

    Args:
        name: name of the attribute.
        tell: function that computes the facts.
    """

    def __init__(self, name: str, tell: Callable[[], MissingAttributeError]) -> None:
        super().__init__(name=name)
        self._tell = tell

    @functools.cached_property
    def facts(self) -> MissingAttributeError:
        """The existing names, the closest one, and the remedy."""
        return self._tell()

    @property
    def remedy(self) -> str | None:
        """What to do to fix the error."""
        return self.facts.remedy

    def __str__(self) -> str:
        return str(self.facts)

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self),), {"facts": self.facts, "name": self.name}  # type: ignore[attr-defined]
