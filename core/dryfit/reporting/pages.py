"""Reports as HTML: one file without any other, with its style and script inside, and nothing loaded from elsewhere."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from dryfit.answers.text import Block, html_text
from dryfit.atomic_file import write_atomically
from dryfit.errors import ConfigError
from dryfit.reporting.figures import Part
from dryfit.short_text import printable

FOLDER = Path(__file__).parent / "page"

IN_FRAGMENTS = (
    r"\.(?:finding|basis|small|picture|map|pieces|blocks|short)",
    "figure|figcaption|table|caption|th|td|summary|h2",
)
"""Beginnings of the rules of the style sheet that parts need inside of another page, as patterns."""


def page_text(title: str, subtitle: str, parts: Sequence[Part], data: Any) -> str:
    """Return a report as one HTML document.

    Args:
        title: heading.
        subtitle: a line below it.
        parts: the parts in their order.
        data: what the script shows of layers, as JSON.
    """
    return _template("report.html.j2").render(
        title=title,
        subtitle=subtitle,
        parts=parts,
        data=_json(data),
        style=_text("report.css"),
        script=_text("report.js"),
    )


def fragment_text(parts: Sequence[Part], prefix: str) -> str:
    """Return parts as HTML inside of another page, such as a notebook.

    Args:
        parts: the parts in their order.
        prefix: beginning of the names of anchors.
    """
    style = _scoped(_text("report.css"))
    sections = [str(_template("part.html.j2").module.section(part, prefix)) for part in parts]  # type: ignore[attr-defined]
    text = re.sub(r'((?:id|href)="#?)(?=layer-\d)', rf"\g<1>{prefix}", "".join(sections))
    return f'<div class="dryfit"><style>{style}</style>{text}</div>'


def _scoped(style: str) -> str:
    """The variables and rules of a page's style that its parts need, for elements of the class `dryfit` only."""
    variables = re.findall(r":root \{[^}]*\}", style)
    rules = re.findall(rf"^((?:{'|'.join(IN_FRAGMENTS)})[^{{}}\n]*)\{{([^}}]*)\}}", style, re.MULTILINE)
    own = [f"{', '.join(f'.dryfit {one.strip()}' for one in names.split(','))} {{{body}}}" for names, body in rules]
    light, dark = (one.replace(":root", ".dryfit") for one in variables)
    frame = ".dryfit { background: var(--background); color: var(--text); padding: 0 .5rem; font-size: .875rem; }"
    return "\n".join([light, f"@media (prefers-color-scheme: dark) {{ {dark} }}", frame, *own])


def index_text(rows: Sequence[Any]) -> str:
    """Return the index of several reports as one HTML document.

    Args:
        rows: the models, `dryfit.reporting.fleet.FleetModel`.
    """
    return _template("index.html.j2").render(rows=rows, style=_text("report.css"), script=_text("index.js"))


def write_page(path: Path, text: str) -> None:
    """Write a file of a report.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, [text.encode()])
    except OSError as error:
        raise ConfigError(
            "The report cannot be written",
            where=f"file {str(path)!r}",
            found=error.strerror or str(error),
            remedy="Choose a folder that can be written to",
        ) from error


def _blocks(blocks: Sequence[Block]) -> str:
    """Blocks as HTML; short cells, such as `72.1 %` or `agx-orin-64 10.3 fp16`, stay on one line."""
    return re.sub(rf"<td>(?=[^<]{{0,{LONGEST_LINE}}}</td>)", '<td class="short">', html_text(blocks))


LONGEST_LINE = 24
"""Characters of a cell that is not wrapped."""


def _json(data: Any) -> str:
    """JSON that can stand in a script element."""
    return json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@functools.cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"blocks": _blocks, "printable": printable}
    return environment.get_template(name)
