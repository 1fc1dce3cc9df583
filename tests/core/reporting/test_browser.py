"""The page of a report in a real browser: search, verdicts, folding, both themes, narrow windows and print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import EXECUTABLE, Tab, browser

import dryfit
from dryfit.answers.check import CheckAnswer
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")
pytest.importorskip("graphlay", reason="needs graphlay: pip install 'dryfit[report]'")
pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="needs Chromium")

BLOCKS = 12
KINDS = (ActivationType.ELU, *(ActivationType.RELU, ActivationType.SIGMOID) * 4)


def network() -> Any:
    """Nine activations, of which DLA rejects one, again and again."""
    network = dryfit.Network()
    tensor = network.add_input("image", DataType.FLOAT, (1, 8, 8, 8))
    for block in range(BLOCKS):
        for place, kind in enumerate(KINDS):
            layer = network.add_activation(tensor, kind)
            layer.name = f"block{block}.{kind.name.lower()}{place}<b>"
            tensor = layer.get_output(0)
    network.mark_output(tensor)
    return network


@pytest.fixture(scope="module")
def found() -> Any:
    return dryfit.report(network(), device="DLA", precision="fp16", platform="agx-orin-64", edits=False)


@pytest.fixture(scope="module")
def page(found: Any, tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    found.save(path)
    return path


@pytest.fixture(scope="module")
def tab(tmp_path_factory: Any) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture
def shown(tab: Tab, page: Path) -> Tab:
    tab.open(page)
    return tab


LAYERS_SHOWN = "[...document.querySelectorAll('.layer')].filter(one => one.getClientRects().length).length"
GROUP = "[...document.querySelectorAll('.fold, .unfold')].find(one => one.getClientRects().length)"


def search(tab: Tab, text: str) -> None:
    tab.run("document.querySelector('.map-tools input').focus()")
    tab.type(text)


def test_search_finds_a_layer_in_a_folded_group_and_centers_it(shown: Tab) -> None:
    assert shown.run(LAYERS_SHOWN) == 0
    search(shown, "block7.elu")
    assert shown.run("document.querySelector('.map-status').textContent") == "1 of 1: block7.elu0<b>"
    away = shown.run(
        "(() => { const box = document.querySelector('.chosen').getBoundingClientRect(), "
        "frame = document.querySelector('.map .picture').getBoundingClientRect(); "
        "return [Math.abs(box.x + box.width / 2 - frame.x - frame.width / 2), "
        "Math.abs(box.y + box.height / 2 - frame.y - frame.height / 2)]; })()"
    )
    assert away[1] < 30
    assert away[0] < 600


def test_search_finds_layers_by_rule_and_goes_on_with_enter(shown: Tab, found: Any) -> None:
    (rule,) = {one.rule for layer in found.facts.check.layers for one in layer.violations("DLA")}
    search(shown, rule)
    shown.key("Enter")
    assert shown.run("document.querySelector('.map-status').textContent") == f"2 of {BLOCKS}: block1.elu0<b>"
    search(shown, "no such layer")
    assert shown.run("document.querySelector('.map-status').textContent") == "No layer found"


def test_a_click_opens_the_verdicts_and_escape_closes_them(shown: Tab, found: Any) -> None:
    search(shown, "block2.elu")
    shown.run("document.querySelector('.chosen').scrollIntoView({block: 'center'})")
    shown.click("document.querySelector('.chosen')")
    text = shown.run("document.querySelector('.panel').innerText")
    check: CheckAnswer = found.facts.check
    layer = check.layer("block2.elu0<b>")
    (violation,) = layer.violations("DLA")
    told = [layer.name, layer.kind, layer.cause, violation.rule, violation.actual, violation.allowed, violation.source]
    told += [violation.parameter, violation.remedy, violation.fidelity, "DLA: not supported", "GPU: supported"]
    assert [one for one in told if one not in text] == []
    shown.key("Escape")
    assert shown.run("document.querySelector('.panel').hidden")
    assert shown.run("document.activeElement.dataset.layer") == "18"


def test_groups_open_and_close_by_click_and_by_enter(shown: Tab) -> None:
    shown.run("document.querySelector('#graph').scrollIntoView()")
    shown.click(GROUP)
    assert shown.run("document.querySelectorAll('.group[data-box] > .unfold[display=inline]').length") == 1
    shown.run("document.querySelector('.map-tools button[aria-label=\"Unfold all groups\"]').click()")
    assert shown.run(LAYERS_SHOWN) == BLOCKS * len(KINDS)
    shown.run("document.querySelector('.map-tools button[aria-label=\"Fold all groups\"]').click()")
    assert shown.run(LAYERS_SHOWN) == 0
    shown.run(f"({GROUP}).focus()")
    shown.key("Enter")
    assert shown.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    shown.key("ArrowDown")
    assert shown.run("document.activeElement.classList.contains('fold')")


def test_nodes_of_open_groups_do_not_overlap(shown: Tab) -> None:
    shown.run("document.querySelector('.map-tools button[aria-label=\"Unfold all groups\"]').click()")
    overlaps = shown.run(
        "(() => { const boxes = [...document.querySelectorAll('.layer')].map(one => one.getBoundingClientRect()); "
        "return boxes.filter((a, i) => boxes.some((b, j) => i < j && a.left < b.right && b.left < a.right "
        "&& a.top < b.bottom && b.top < a.bottom)).length; })()"
    )
    assert overlaps == 0


def test_zoom_by_buttons_keys_and_wheel(shown: Tab) -> None:
    width = "Number(document.querySelector('.graph').getAttribute('width'))"
    first = shown.run(width)
    shown.run("document.querySelector('.map-tools button[aria-label=\"+, zoom in\"]').click()")
    second = shown.run(width)
    assert second == pytest.approx(1.25 * first)
    shown.run("document.querySelector('.map .picture').focus()")
    shown.key("-")
    assert shown.run(width) == pytest.approx(first)
    shown.run(
        "document.querySelector('.map .picture').dispatchEvent("
        "new WheelEvent('wheel', {deltaY: -400, ctrlKey: true, cancelable: true}))"
    )
    assert shown.run(width) > 2 * first


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_error_reaches_the_console_and_the_page_is_not_wider_than_the_window(
    tab: Tab, page: Path, width: int, is_dark: bool
) -> None:
    tab.errors.clear()
    tab.open(page, width=width, is_dark=is_dark)
    search(tab, "block1")
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.errors == []


def test_without_scripts_the_folded_graph_is_shown_and_leads_to_the_table(tab: Tab, page: Path, found: Any) -> None:
    tab.open(page, runs=False)
    part = next(one for one in found.parts if one.name == "graph")
    assert f"{BLOCKS} \u00d7 {len(KINDS)} layers" in part.figures[0].svg
    text = found.to_html()
    links = re.findall(r'href="#(layer-\d+)"', text)
    assert len(links) == BLOCKS * len(KINDS)
    assert all(f'id="{one}"' in text for one in links)


def test_the_page_prints_on_several_pages_with_its_text(tab: Tab, page: Path) -> None:
    tab.open(page)
    pdf = tab.pdf()
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2
