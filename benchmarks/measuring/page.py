"""The page of results in docs: each benchmark writes its own section and leaves the others as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown; numbers are set by whoever makes the rows."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The same for a terminal: columns as wide as their widest cell."""
    cells = [[str(cell) for cell in line] for line in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells)
    return "".join(f"{line}\n" for line in lines)


def with_section(text: str, name: str, contents: str) -> str:
    """The page with another section of that name.

    Raises:
        ValueError: the page has no such section.
    """
    before, _, after = _around_section(text, name)
    return f"{before}\n{contents.strip()}\n{after}"


def write_section(name: str, contents: str, path: Path = PAGE) -> None:
    """Exchange a section of the page.

    Raises:
        ValueError: as `with_section`.
    """
    path.write_text(with_section(path.read_text(encoding="utf-8"), name, contents), encoding="utf-8")


def section_rows(name: str, path: Path = PAGE) -> list[tuple[str, ...]]:
    """The rows of the table of a section, without its head.

    Raises:
        ValueError: the page has no such section.
    """
    _, section, _ = _around_section(path.read_text(encoding="utf-8"), name)
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:]]


def _around_section(text: str, name: str) -> tuple[str, str, str]:
    """The page up to the mark that begins a section, the section, and the page from the mark that ends it on."""
    begin, end = f"<!-- {name} begins -->", f"<!-- {name} ends -->"
    before, is_begun, rest = text.partition(begin)
    section, is_ended, after = rest.partition(end)
    if not is_begun or not is_ended:
        raise ValueError(f"the page has no section between {begin!r} and {end!r}")
    return before + begin, section, end + after
