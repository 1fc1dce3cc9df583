"""The page of hooks and entry points, from the declarations themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from dryfit.passes.canonical import own_passes
from dryfit.plugins import API_LEVEL, contributions, hookspecs
from dryfit.plugins.discovery import GROUPS
from dryfit.plugins.hook_modules import HOOK_NAMES

_HEAD = """# Hooks and entry points

Written by `make docs` from the declarations in `dryfit.plugins`.

An installed package takes part in two ways. An *entry point* gives a name to one thing, which is loaded when the name
is asked for. A *hook* is a function that dryfit calls at a moment; a module of such functions, each marked with
`@dryfit.hookimpl`, is named in the group `dryfit.hooks`. Where both can say the same, they mean the same.

A name of dryfit's own stays dryfit's. One that two other packages claim belongs to neither, and both are named. A
plugin that fails never stops dryfit: `dryfit plugins list` shows what is installed, `dryfit plugins doctor` tries each
plugin and says what to do.
"""

_SWITCHES = """
## Switching plugins off

| by | what |
|---|---|
| `DRYFIT_DISABLE_PLUGINS=a,b` | these entry points or packages are off; `*`: all that do not come with dryfit |
| `DRYFIT_LOAD_PLUGINS=a,b` | of what does not come with dryfit only these are on; empty: none |
| `dryfit --no-plugins COMMAND` | as `DRYFIT_DISABLE_PLUGINS=*`, for one command |
| `DRYFIT_PLUGIN_TIMEOUT=SECONDS` | CPU time that the command line allows the import of a plugin; 10 if not set |
"""

_SECTIONS = "When|Args|Returns|Answers|Implemented by|Attributes|Raises"
_PART = re.compile(rf"((?P<section>{_SECTIONS})| {{4}}(?P<argument>\w[\w, ]*)):(?P<text>.*)")
"""A line that begins a section of a docstring, or one argument of a section."""


def hooks_page() -> str:
    """The page, in Markdown."""
    groups = "".join(f"| `{group}` | {text} |\n" for group, text in GROUPS.items())
    passes = ", ".join(f"`{one.name}`" for one in own_passes())
    hooks = "".join(_hook_section(getattr(hookspecs, name)) for name in HOOK_NAMES)
    records = "".join(_record_section(record) for record in _records())
    return (
        f"{_HEAD}\n## Entry points\n\n| group | name and value |\n|---|---|\n{groups}"
        f"\nThe level of this interface is {API_LEVEL}. A module, or its top package, that needs a level states it: "
        f"`DRYFIT_API_LEVEL = {API_LEVEL}`.\n{_SWITCHES}"
        f"\n## Passes\n\nA contributed pass stands before or after one of these, or of other packages': {passes}.\n"
        f"\n## Hooks\n{hooks}\n## Records\n{records}"
    )


def _hook_section(hook: Callable[..., Any]) -> str:
    """A hook's signature, what it is for, and a row for each part of its docstring."""
    signature = inspect.signature(hook)
    parameters = ", ".join(f"{name}: {one.annotation}" for name, one in signature.parameters.items())
    first, *parts = _parts(hook)
    rows = "".join(_rows(parts))
    code = f"```\n{hook.__name__}({parameters}) -> {signature.return_annotation}\n```"
    return f"\n### {hook.__name__}\n\n{first[1]}\n\n{code}\n\n| | |\n|---|---|\n{rows}"


def _record_section(record: type) -> str:
    """A record's fields, or an observer's methods, with what they mean."""
    first, *parts = _parts(record)
    rows = _rows(parts)
    rows += [
        f"| `{name}({', '.join([*inspect.signature(method).parameters][1:])})` | {_joined(method.__doc__ or '')} |\n"
        for name, method in vars(record).items()
        if inspect.isfunction(method) and not name.startswith("_")
    ]
    return f"\n### {record.__name__}\n\n{first[1]}\n\n| | |\n|---|---|\n{''.join(rows)}"


def _rows(parts: list[tuple[str, str]]) -> list[str]:
    """A table row for each part that says something itself, and not only by what stands below it."""
    return [f"| {key} | {text} |\n" for key, text in parts if text]


def _records() -> list[type]:
    found = vars(contributions).values()
    return [one for one in found if inspect.isclass(one) and one.__module__ == contributions.__name__]


def _parts(documented: Any) -> Iterator[tuple[str, str]]:
    """The text before the first section of a docstring, under "", and each section and argument with its text."""
    key = ""
    lines: list[str] = []
    for line in inspect.cleandoc(documented.__doc__ or "").splitlines():
        named = _PART.match(line)
        if named:
            yield key, _joined(" ".join(lines))
            key, lines = named["section"] or f"`{named['argument']}`", [named["text"]]
        else:
            lines.append(line)
    yield key, _joined(" ".join(lines))


def _joined(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
