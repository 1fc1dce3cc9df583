"""Bars, verdicts and the page: what is written follows from what was found."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

import networks
import quantizers
from measuring.bars import BARS, Comparison, Memory
from measuring.page import PAGE, plain_table, section_rows, table, with_section, write_section

FOUND = Comparison("resnet50", "int8", 1, 2, "openvino", "u8", 10.0, "50%", 12.0, 1.2, 1.2, 1.25)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "verdict"),
    [
        (1.3, 1.25, 1.35, "met"),
        (1.2, 1.2, 1.2, "met"),
        (1.3, 1.1, 1.4, "met?"),
        (1.15, 1.1, 1.18, "MISSED"),
        (1.15, 1.1, 1.3, "MISSED?"),
    ],
)
def test_a_bar_is_met_by_the_median_and_doubtful_where_the_quartiles_surround_it(ratio, low, high, verdict):
    found = attrs.evolve(FOUND, ratio=ratio, low=low, high=high)
    assert found.bar == 1.2
    assert found.verdict == verdict


def test_larger_batches_have_one_bar_a_peer():
    assert attrs.evolve(FOUND, batch=8).bar == 1.0
    assert attrs.evolve(FOUND, batch=8, network="squeezenet", peer="onnxruntime").bar == 1.05
    assert attrs.evolve(FOUND, network="squeezenet").bar is None
    assert attrs.evolve(FOUND, network="squeezenet").verdict == ""


def test_every_bar_is_of_a_network_that_is_measured():
    assert {network for network, _ in BARS} == set(networks.NETWORKS)
    assert {precision for _, precision in BARS} == set(networks.FORMS)
    assert all(set(peers) == set(networks.PEERS) for peers in BARS.values())


def test_memory_is_within_its_bar_up_to_what_the_peer_takes():
    assert Memory("resnet50", "fp32", 200.0, 200.0).verdict == "met"
    assert Memory("resnet50", "fp32", 201.0, 200.0).verdict == "MISSED"


def test_the_section_says_how_many_bars_are_met_and_has_a_row_for_each_comparison():
    missed = attrs.evolve(FOUND, peer="onnxruntime")
    larger = attrs.evolve(FOUND, batch=32)
    text = networks.section([FOUND, missed, larger], [Memory("resnet50", "int8", 90.4, 100.0)])
    assert "2 of 3 bars are met" in text
    assert (
        "| resnet50 | INT8 | 1 | 2 | 10.00 ms | 50% | openvino u8 | 12.00 ms | 1.20 | 1.20 to 1.25 | >= 1.2 | met |"
        in text
    )
    assert "| onnxruntime u8 | 12.00 ms | 1.20 | 1.20 to 1.25 | >= 1.35 | MISSED |" in text
    assert "| 32 | 2 | 10.00 ms | 50% | openvino u8 | 12.00 ms | 1.20 | 1.20 to 1.25 | >= 1 | met |" in text
    assert "| resnet50 | INT8 | 90 MiB | 100 MiB | met |" in text


def test_tables_have_a_line_for_each_row():
    assert table(("a", "b"), [(1, "x")]) == "| a | b |\n| --- | --- |\n| 1 | x |\n"
    assert plain_table(("name", "b"), [("x", 12), ("longer", "")]) == "name    b\nx       12\nlonger\n"


def test_a_section_is_exchanged_and_the_rest_stays(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n<!-- a begins -->\nold \\1\n<!-- a ends -->\n<!-- b begins -->\nkept\n<!-- b ends -->\n")
    write_section("a", "new \\1\n\nlines\n", page)
    assert page.read_text() == (
        "# Page\n<!-- a begins -->\nnew \\1\n\nlines\n<!-- a ends -->\n<!-- b begins -->\nkept\n<!-- b ends -->\n"
    )


def test_a_section_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="c begins"):
        with_section("# Page\n", "c", "text")


@pytest.mark.parametrize("name", ["networks", "kernels", "start-up"])
def test_the_page_in_docs_has_every_section(name: str):
    assert "new text" in with_section(PAGE.read_text(encoding="utf-8"), name, "new text")


def test_rows_of_other_quantizers_are_read_from_the_page(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n<!-- a begins -->\n<!-- a ends -->\n")
    columns = quantizers.COLUMNS[:3]
    dryfit, other = ("", "dryfit, INT8 GPU, entropy2", "1"), ("", "NNCF, default", "3")
    rows = [("net", "FP32", ""), dryfit, other, ("second", "FP32", ""), dryfit]
    write_section("a", table(columns, rows), page)
    assert section_rows("a", page) == rows
    assert quantizers.others_of(rows) == {"net": [other]}
    with pytest.raises(ValueError, match="b begins"):
        section_rows("b", page)
