"""The page of trtexec's options, from the table of all options and that of the command line's hints."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.board.trtexec_options import API_VERSIONS, TRTEXEC_OPTIONS, OptionAnswer, OptionGroup, TrtexecOption
from dryfit.board.versions import version_text
from dryfit.cli.trtexec_names import COUNTERPARTS

_HEAD = """# trtexec's options

Written by `make docs` from the tables that the command line uses.

[`dryfit exec`](../how-to/run-trtexec-lines.md) takes the command lines of trtexec 8.6, 10.16 and 11.1. Each option

* *works*: it does here what it does in trtexec,
* has *no effect*: the line runs, and a warning says why the option changes nothing, or
* is *refused*: the line fails, as in trtexec or because nothing here can do it.

An option that the chosen version does not have is refused as unknown, as trtexec does. All times are those of this
machine.
"""

_COUNTERPARTS = """## The same in other commands

`check` shows where layers run, `build` builds an engine, `run` runs one on this machine, and
[`export trtexec`](../how-to/export-to-the-board.md) writes trtexec's own command line. Where the table says *accepted*,
trtexec's spelling works as it is, `--option=value` too; the model is given without `--onnx`.

| trtexec | commands | here | |
|---|---|---|---|
"""


def trtexec_page() -> str:
    """The page that says what each option of trtexec is here, in Markdown."""
    rows = [
        f"| `{name}` | {one.commands} | {f'`{one.option}`' if one.option else ''} | "
        f"{'. '.join(filter(None, ['Accepted' if one.is_accepted else '', one.advice]))} |\n"
        for name, one in sorted(COUNTERPARTS.items(), key=lambda item: item[0].lower())
    ]
    return "\n".join([_HEAD, *_groups(), _COUNTERPARTS]) + "".join(rows)


def _groups() -> Iterator[str]:
    for group in OptionGroup:
        options = [one for one in TRTEXEC_OPTIONS.values() if one.group is group]
        counts = ", ".join(f"{sum(one.answer is answer for one in options)} {answer}" for answer in OptionAnswer)
        rows = "\n".join(map(_row, options))
        yield f"## {group.value} options\n\n{len(options)} options: {counts}.\n"
        yield f"| option | versions | in trtexec | `dryfit exec` |\n|---|---|---|---|\n{rows}\n"


def _row(option: TrtexecOption) -> str:
    syntax = f"{option.name}={option.value}" if option.value else option.name
    names = ", ".join(f"`{_escaped(one)}`" for one in (syntax, *option.aliases))
    versions = ", ".join(name for name, version in API_VERSIONS.items() if version in option.versions)
    default = f" (default: `{_escaped(option.default)}`)" if option.default else ""
    answer = f"{option.answer}: {option.why}" if option.why else str(option.answer)
    if option.no_effect_since is not None:
        answer += f"; no effect from {version_text(option.no_effect_since)} on, as there"
    return f"| {names} | {versions} | {option.text}{default} | {answer} |"


def _escaped(text: str) -> str:
    """Return text for a cell of a table, in which a bar would begin the next one."""
    return text.replace("|", "\\|")
