"""The parts in which `make unit` runs the tests have all of them, each once."""

from __future__ import annotations

from pathlib import Path

from tests.in_parts import PARTS, left_out


def test_each_file_of_tests_runs_in_one_part(repository: Path) -> None:
    def is_in(path: Path, folders: list[str]) -> bool:
        return any((repository / folder) in path.parents for folder in folders)

    for path in (repository / "tests").rglob("test_*.py"):
        parts = [part for part in PARTS if is_in(path, list(part)) and not is_in(path, left_out(part))]
        assert len(parts) == 1, path


def test_each_part_exists(repository: Path) -> None:
    assert all((repository / folder).is_dir() for part in PARTS for folder in part)
