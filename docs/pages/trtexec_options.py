"""The page of trtexec's options, from the table that the command line's hints come from."""

from __future__ import annotations

from dryfit.cli.trtexec_names import COUNTERPARTS

_HEAD = """# trtexec's options

Written by `make docs` from the table that the command line's hints come from.

`dryfit` has no command of trtexec's name: `check` shows where layers run, `build` builds an engine, `run` runs one on
this machine, and [`export trtexec`](../how-to/export-to-the-board.md) writes trtexec's own command line. Where the
table says *accepted*, trtexec's spelling works as it is, `--option=value` too; the model is given without `--onnx`.

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
    return _HEAD + "".join(rows)
