"""Charts are drawn in a process of their own, as vl-convert draws them here; errors reach whoever asks for them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dryfit.errors import ConfigError, DryfitError
from dryfit.reporting import chart_drawing
from dryfit.reporting.chart_drawing import ChartDrawer, drawing, drawn
from dryfit.reporting.figures import chart

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")

BARS: dict[str, Any] = {
    "data": {"values": [{"of": "größer", "value": 2.5}, {"of": "smaller", "value": 1}]},
    "mark": "bar",
    "encoding": {"x": {"field": "value", "type": "quantitative"}, "y": {"field": "of", "type": "nominal"}},
}
WRONG = json.dumps({"data": {"values": []}, "mark": "no such mark"})


@pytest.fixture(scope="module")
def drawer() -> Iterator[ChartDrawer]:
    made = ChartDrawer()
    yield made
    made.end()


def test_a_chart_is_what_vl_convert_draws(drawer: ChartDrawer) -> None:
    text = json.dumps(BARS)
    assert drawer.draw(text).result() == drawn(text)
    assert "größer" in drawn(text)


def test_an_error_is_that_of_its_chart_alone(drawer: ChartDrawer) -> None:
    wrong, right = drawer.draw(WRONG), drawer.draw(json.dumps(BARS))
    with pytest.raises(ValueError, match="Vega-Lite to SVG conversion failed"):
        wrong.result()
    assert right.result().startswith("<svg")


def test_a_process_that_ends_is_an_error() -> None:
    drawer = ChartDrawer()
    assert drawer.process_id is not None
    os.kill(drawer.process_id, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(DryfitError, match=r"draws charts ended.*exit code -9"):
            drawer.draw(json.dumps(BARS)).result()


def test_without_a_process_charts_are_drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/opt/application")
    drawer = ChartDrawer()
    assert drawer.process_id is None
    assert drawer.draw(json.dumps(BARS)).result() == drawn(json.dumps(BARS))


def test_no_process_starts_without_vl_convert(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert ChartDrawer().process_id is None
    with pytest.raises(ConfigError, match=r"Reports need vl-convert.*pip install 'dryfit\[report\]'"):
        chart("bars", "one", "two bars", BARS)


def test_equal_charts_are_drawn_once() -> None:
    first, second = (chart("bars", title, "two bars", BARS) for title in ("one", "another"))
    assert first.svg == second.svg
    assert drawing.cache_info().hits > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
def test_a_fork_has_a_process_of_its_own() -> None:
    parent = chart_drawing.start_drawing().process_id
    child = os.fork()
    if not child:
        try:
            own = chart_drawing.start_drawing()
            is_own = own.process_id not in (None, parent)
            own.end()
            os._exit(0 if is_own else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert chart_drawing.start_drawing().process_id == parent
