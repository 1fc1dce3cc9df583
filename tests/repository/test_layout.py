"""The house stays as it is drawn: where things lie, how large they are, and what they do not say."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

SOURCES = (
    "core/dryfit",
    "targets/cpu/dryfit_cpu",
    "targets/gpu/dryfit_gpu",
    "targets/dla/dryfit_dla",
    "plugins/dryfit_plugins",
    "frontends/tensorrt/dryfit_tensorrt",
)
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base"}


def source_files(repository: Path) -> list[Path]:
    return sorted(path for root in SOURCES for path in (repository / root).rglob("*.py"))


def text_files(repository: Path) -> list[Path]:
    """Every text file that belongs to the repository, as git sees it where git is there."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = [repository / line for line in listed.stdout.splitlines()]
    else:
        folders = ("core", "targets", "plugins", "frontends", "tests", "docs", "examples", "benchmarks")
        paths = [path for folder in folders for path in (repository / folder).rglob("*")] + list(repository.glob("*.*"))
    suffixes = {".py", ".md", ".toml", ".json", ".txt", ".engine", ".tmp", ".log", ""}
    return [path for path in paths if path.is_file() and path.suffix in suffixes]


def test_every_source_root_has_a_package(repository: Path) -> None:
    for root in SOURCES:
        assert (repository / root / "__init__.py").is_file(), root


def test_no_module_has_a_vague_name(repository: Path) -> None:
    relative = [path.relative_to(repository) for path in source_files(repository)]
    assert not [path for path in relative if VAGUE_NAMES & {part.removesuffix(".py") for part in path.parts}]


def test_every_module_says_why_it_exists(repository: Path) -> None:
    silent = [
        str(path.relative_to(repository))
        for path in source_files(repository)
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent


def test_what_writes_the_pages_of_docs_is_not_installed(repository: Path) -> None:
    writers = ("Written by `make docs`", "by `make docs`; do not edit")
    texts = {path: path.read_text(encoding="utf-8") for path in source_files(repository)}
    assert not [path for path, text in texts.items() if any(words in text for words in writers)]
    pages = "".join(path.read_text(encoding="utf-8") for path in (repository / "docs" / "pages").rglob("*.py"))
    assert all(words in pages for words in writers)


def test_tests_lie_where_their_sources_lie(repository: Path) -> None:
    for folder in (repository / "tests" / "core").glob("*/"):
        if folder.is_dir() and folder.name != "__pycache__":
            assert (repository / "core" / "dryfit" / folder.name).is_dir(), folder


def test_no_built_or_unfinished_file_is_kept(repository: Path) -> None:
    assert not [path for path in text_files(repository) if path.suffix in {".engine", ".tmp", ".log"}]


@pytest.mark.parametrize("pattern", [r"\bTODO\b", r"\bFIXME\b", r"\bXXX\b", r"/home/\w+/"])
def test_no_text_speaks_of_unfinished_work_or_of_someones_machine(repository: Path, pattern: str) -> None:
    found = [
        f"{path.relative_to(repository)}: {line.strip()[:100]}"
        for path in text_files(repository)
        if path != Path(__file__)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if re.search(pattern, line)
    ]
    assert not found
