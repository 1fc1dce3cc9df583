from __future__ import annotations

import io

import pytest

from dryfit.answers.text import TABLE_NAME, Table, bytes_text, device_text, table_name
from dryfit.cli import console
from dryfit.short_text import count_text, sparkline


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 31, "6.0 GiB")],
)
def test_sizes_are_written_for_people(size: int, text: str) -> None:
    assert bytes_text(size) == text


def test_elsewhere_than_on_a_terminal_a_table_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console.show([Table("Layers", ["layer", "shape"], [("conv1", (1, 3, 8)), ("a", None)])])
    assert capsys.readouterr().out == "Layers\n  layer  shape\n  conv1  1x3x8\n  a      -\n"


def test_on_a_terminal_a_table_has_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "100")
    console.show([Table("Layers", ["layer", "runs"], [("[bold]conv1", "yes")])])
    assert "[bold]conv1" in terminal.getvalue()
    assert "yes" in terminal.getvalue()


@pytest.mark.parametrize(("number", "text"), [(0, "0 layers"), (1, "1 layer"), (2, "2 layers")])
def test_a_count_has_its_noun_in_the_right_number(number: int, text: str) -> None:
    assert count_text(number, "layer") == text


def test_a_device_without_a_variant_has_no_brackets() -> None:
    assert device_text("CPU", "", "") == "CPU"
    assert device_text("DLA", "orin-nx-16", "10.3") == "DLA (orin-nx-16 10.3)"


def test_a_long_name_in_a_table_keeps_both_ends() -> None:
    name = f"model/{'block/' * 30}Conv"
    assert len(table_name(name)) == TABLE_NAME
    assert table_name(name).startswith("model/block")
    assert table_name(name).endswith("block/Conv")
    assert table_name("conv1") == "conv1"


def test_a_bar_is_only_drawn_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [("DLA", 97), ("GPU", 3), ("", 1)]
    console.show_bar(parts)
    assert capsys.readouterr().out == ""
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "100")
    console.show_bar(parts)
    assert "97 DLA" in terminal.getvalue()
    assert "1 unplaced" in terminal.getvalue()
    before = terminal.getvalue()
    console.show_bar(parts[:1])
    assert terminal.getvalue() == before


def test_a_sparkline_shows_rare_values_and_gaps() -> None:
    assert sparkline([1000, 10, 0, 1]) == "█▃ ▁"
    assert len(sparkline([1] * 64)) == 16
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "  "
