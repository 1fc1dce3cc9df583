"""The generated pages of docs are what the code says now."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def test_the_generated_pages_are_current(repository: Path) -> None:
    command = [sys.executable, repository / "docs" / "generate.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_link_inside_the_docs_leads_somewhere(repository: Path) -> None:
    pages = [repository / "README.md", repository / "CHANGELOG.md", *repository.glob("docs/**/*.md")]
    pages += repository.glob("examples/**/*.md")
    broken = [
        f"{page.relative_to(repository)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken


def test_every_page_of_docs_can_be_reached_from_the_first(repository: Path) -> None:
    reached, waiting = set(), [repository / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or not page.is_file():
            continue
        reached.add(page)
        if page.suffix == ".md":
            targets = re.findall(r"\]\(([^)#:]+)[^)]*\)", page.read_text(encoding="utf-8"))
            waiting += [(page.parent / target).resolve() for target in targets]
    pages = {path.resolve() for path in (repository / "docs").rglob("*") if path.suffix in {".md", ".json"}}
    assert not pages - reached
