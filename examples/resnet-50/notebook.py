"""Writes `deploy.ipynb` from `deploy.py`: runs each cell, and keeps what it prints.

`python notebook.py`. A cell of the script begins with `# %%`; one of text, `# %% [markdown]`, is in comments.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CELL = re.compile(r"^# %%(?P<kind> \[markdown\])?\n(?P<text>.*?)(?=^# %%|\Z)", re.DOTALL | re.MULTILINE)


def cells(script: str) -> list[tuple[str, str]]:
    """The cells of a script: kind, `markdown` or `code`, and text."""
    found = []
    for match in CELL.finditer(script):
        lines = match["text"].strip("\n").splitlines()
        kind = "markdown" if match["kind"] else "code"
        text = [line.removeprefix("#").removeprefix(" ") for line in lines] if match["kind"] else lines
        found.append((kind, "\n".join(text)))
    return found


def notebook(script: str, outputs: Sequence[str]) -> dict[str, Any]:
    """The notebook of a script, with what its code cells printed."""
    printed = iter(outputs)
    made: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells(script)):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        cell["source"] = text.splitlines(keepends=True)
        if kind == "code":
            lines = next(printed).splitlines(keepends=True)
            stream = {"name": "stdout", "output_type": "stream", "text": lines}
            cell |= {"execution_count": None, "outputs": [stream] if lines else []}
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def run(script: str) -> list[str]:
    """Run the code cells of a script in one namespace; returns what each prints."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for kind, text in cells(script):
        if kind == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, "deploy.py", "exec"), namespace)  # noqa: S102  our own script
            outputs.append(printed.getvalue())
    return outputs


if __name__ == "__main__":
    SCRIPT = (HERE / "deploy.py").read_text(encoding="utf-8")
    made = notebook(SCRIPT, run(SCRIPT))
    (HERE / "deploy.ipynb").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
