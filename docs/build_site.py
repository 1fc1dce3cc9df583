"""Builds the documentation site into `build/site/html`, with every warning an error.

Sphinx reads a copy of `docs`, in which links that lead out of `docs` are mended, and pages are added that only the site
has: the Python API, from the docstrings, and the rules of each device, one section a rule.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import dryfit
from dryfit.target import STABLE_NAMES

REPOSITORY = Path(__file__).parents[1]
SITE = REPOSITORY / "build" / "site"
SOURCE = SITE / "source"

COPIED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
"""Pages that lie in the root of the repository, where people look for them, to their names on the site."""

RULED_DEVICES = ("DLA", "GPU")

API_PAGES: Sequence[tuple[str, str, str, tuple[str, ...]]] = (
    ("questions", "Questions and answers", "One function for each command.", ("answers",)),
    (
        "building",
        "Build engines",
        "The builder, its configuration, and importing ONNX models.",
        ("builder", "building", "onnx"),
    ),
    ("running", "Run engines", "Engines, execution contexts, the runtime, profilers and progress.", ("engine",)),
    ("networks", "Networks", "Networks, layers, tensors, and the enumerations of their parameters.", ("network",)),
    ("calibration", "Calibration", "Calibrators, collectors and dynamic ranges.", ("quantization",)),
    (
        "plugins",
        "Plugins and errors",
        "Hooks, the records of a target, and the errors, which all derive from `DryfitError`.",
        ("plugins", "target", "errors"),
    ),
)
"""File name, title and subject of each page of public names, and the packages of `dryfit` that it covers."""


def main() -> int:
    """Lay out the sources, and build."""
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(REPOSITORY / "docs", SOURCE, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    shutil.copy(REPOSITORY / "docs" / "site" / "conf.py", SOURCE)
    for name, page in COPIED.items():
        shutil.copy(REPOSITORY / name, SOURCE / page)
    for page in SOURCE.rglob("*.md"):
        page.write_text(site_text(page.read_text(encoding="utf-8"), page), encoding="utf-8")
    write_api_pages(SOURCE / "reference" / "api")
    write_rule_pages(SOURCE / "reference" / "rules")
    command = ["-m", "sphinx", "-b", "dirhtml", "-W", "--keep-going", "-q", SOURCE, SITE / "html"]
    return subprocess.run([sys.executable, *command], check=False).returncode  # noqa: S603  our own command


def site_text(text: str, page: Path) -> str:
    """A page as it stands on the site: links that lead out of `docs` go to the copies, or become names of files."""
    name = page.relative_to(SOURCE)
    roots = {copy: original for original, copy in COPIED.items()}
    folder = REPOSITORY if str(name) in roots else (REPOSITORY / "docs" / name).parent
    up = "../" * (len(name.parts) - 1)

    def mended(match: re.Match[str]) -> str:
        path, mark, anchor = match["target"].partition("#")
        original = (folder / path).resolve()
        if not path or "://" in path or not original.exists():
            return match[0]
        place = original.relative_to(REPOSITORY).as_posix()
        if place in COPIED:
            return f"[{match['words']}]({up}{COPIED[place]}{mark}{anchor})"
        if place.startswith("docs/"):
            return f"[{match['words']}]({up}{place.removeprefix('docs/')}{mark}{anchor})"
        return f"{match['words']} (`{place}` in the repository)"

    return unbroken(re.sub(r"\[(?P<words>[^\[\]]*)\]\((?P<target>[^()\s]+)\)", mended, text))


def unbroken(text: str) -> str:
    """A page whose tables keep a number and its unit, and two numbers of one quantity, on one line."""
    number = re.compile(r"(?<=\d)( |(?: (?:to|of|x|\+-) ))(?=\d|[kMG]?i?B\b|[mun]s\b|dB\b|%)|(?<=[<>]=) (?=\d)")
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if line.startswith("|"):
            pieces = line.split("`")  # code, between backticks, is copied
            pieces[::2] = [
                number.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), one) for one in pieces[::2]
            ]
            lines[index] = "`".join(pieces)
    return "\n".join(lines)


def write_rule_pages(folder: Path) -> None:
    """Write a page of rules for each device that comes with dryfit and has rules."""
    sys.path.insert(0, str(REPOSITORY))
    from docs.pages.rule_pages import rule_page

    folder.mkdir()
    for device in RULED_DEVICES:
        (folder / f"{device.lower()}.md").write_text(rule_page(device), encoding="utf-8")


# The Python API -------------------------------------------------------------------------------------------------------


def write_api_pages(folder: Path) -> None:
    """Write the pages of the Python API, and their index."""
    folder.mkdir()
    homes = {name: getattr(dryfit, name) for name in dir(dryfit)}
    for file, title, subject, packages in API_PAGES:
        names = [name for name, value in homes.items() if value.__module__.split(".")[1] in packages]
        (folder / f"{file}.md").write_text("".join(api_page(title, subject, names)), encoding="utf-8")
    (folder / "targets.md").write_text("".join(targets_page()), encoding="utf-8")
    pages = [*API_PAGES, ("targets", "Declare a target", "What a package that provides a device imports.", ())]
    listed = "".join(f"* [{title}]({file}.md). {subject}\n" for file, title, subject, _ in pages)
    tree = "\n".join(file for file, *_ in pages)
    (folder / "index.md").write_text(
        "# Python API\n\nGenerated from the docstrings. "
        "Import these names from `dryfit`, except those on *Declare a target*.\n\n"
        f"{listed}\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n",
        encoding="utf-8",
    )


def api_page(title: str, subject: str, names: Sequence[str]) -> Iterator[str]:
    """A page of names that are imported from `dryfit`, in Markdown."""
    yield f"# {title}\n\n{subject}\n"
    for name in names:
        yield directive("dryfit", name)


def targets_page() -> Iterator[str]:
    """The page of the names that a target is declared with, by module."""
    yield "# Declare a target\n\nWhat a package that provides a device imports, and from where.\n"
    for place, names in STABLE_NAMES.items():
        yield f"\n## {place}\n"
        for name in names:
            yield directive(place, name)


def directive(place: str, name: str) -> str:
    """What makes Sphinx write a name's documentation, with a heading of its own."""
    value = getattr(importlib.import_module(place), name)
    kind = "class" if inspect.isclass(value) else "function" if inspect.isroutine(value) else "data"
    heading = "##" if place == "dryfit" else "###"
    options = "   :no-index:\n" if place != "dryfit" else ""
    members = list(value.__members__) if inspect.isclass(value) and issubclass(value, enum.Enum) else []
    listed = f"\nMembers: {', '.join(f'`{member}`' for member in members)}\n" if members else ""
    return f"\n{heading} {name}\n\n```{{eval-rst}}\n.. auto{kind}:: {place}.{name}\n{options}```\n{listed}"


if __name__ == "__main__":
    sys.exit(main())
