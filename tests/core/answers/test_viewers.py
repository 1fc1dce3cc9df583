"""What viewers of others show of our files: Netron in a browser, and Perfetto's trace processor."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.answers.headless_browser import Page, browser, headless_page
from tests.core.answers.trace_events import read_trace

import dryfit
from dryfit.answers.run import run

ORIN: Any = {"platform": "agx-orin-64", "shape": {"image": (1, 1, 8, 8)}}
TRACE_PROCESSOR = "DRYFIT_TRACE_PROCESSOR"
"""Environment variable with the path of Perfetto's trace_processor_shell, if it is not on PATH."""

TITLES = """[...document.querySelectorAll('.node-item-type')].map(
    title => [title.textContent, [...title.classList].pop()])"""
ITEMS = """[...document.querySelectorAll('#sidebar .sidebar-item')].map(item => [
    item.querySelector('.sidebar-item-name').textContent || item.querySelector('.sidebar-item-name input').value,
    item.querySelector('.sidebar-item-value-list').innerText.replace(/^\\+\\n/, '')])"""


@pytest.fixture
def netron() -> Iterator[Any]:
    found = pytest.importorskip("netron", reason="Netron is not installed (PyPI: netron)")
    if browser() is None:
        pytest.skip("no Chromium to show pages in")
    yield found
    found.stop()


@pytest.fixture
def page(netron: Any, tmp_path: Path) -> Iterator[Page]:
    with headless_page(tmp_path / "browser") as opened:
        yield opened


def show(netron: Any, page: Page, model: Path) -> list[tuple[str, str]]:
    """Serve a model, wait until Netron has drawn it; returns title and style of each node."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    address = netron.start(str(model), address=("localhost", port), browse=False)
    page.open(f"http://{address[0]}:{address[1]}/")
    # It asks first whether it may use cookies.
    page.wait_for(
        "(() => { document.getElementById('message-button')?.click();"
        " return document.querySelectorAll('.node-item-type').length })()"
    )
    return [(title.removesuffix(name), style) for title, style in page.value(TITLES) for name in [""]]


def properties_of(page: Page, name: str) -> dict[str, str]:
    """What the side bar shows of a node's metadata, by the name of the node."""
    page.value(
        f"[...document.querySelectorAll('.node-item-type')].find(one => one.querySelector('title')?.textContent === "
        f"{name!r}).dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
    )
    page.wait_for(f"({ITEMS}).some(item => item[0] === 'name' && item[1] === {name!r})")
    return {key: text for key, text in page.value(ITEMS) if key.startswith("dryfit.")}


def test_netron_shows_what_is_written_about_each_node(
    netron: Any, page: Page, digits_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "annotated.onnx"
    answer = dryfit.annotate(digits_model, path, **ORIN)
    assert len(show(netron, page, path)) == len(answer.nodes)
    for name in ("conv1", "elu2"):
        shown = properties_of(page, name)
        written = {f"dryfit.{key}": text for key, text in answer.node(name).notes.properties.items()}
        assert shown == written


def test_netron_shows_devices_by_the_colors_of_operators(
    netron: Any, page: Page, digits_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "annotated.onnx"
    answer = dryfit.annotate(digits_model, path, color="operators", **ORIN)
    styles = [style for _, style in show(netron, page, path)]
    by_device: dict[str | None, set[str]] = {}
    for node, style in zip(answer.nodes, styles, strict=True):
        by_device.setdefault(node.device, set()).add(style)
    assert by_device["DLA"] == {"node-item-type-layer"}
    assert by_device["GPU"] == {"node-item-type-activation"}
    assert by_device[None] == {"node-item-type"}


def test_netron_leaves_color_only_to_nodes_that_left_the_device(
    netron: Any, page: Page, digits_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "annotated.onnx"
    answer = dryfit.annotate(digits_model, path, color="domains", **ORIN)
    shown = show(netron, page, path)
    assert {style for (_, style), node in zip(shown, answer.nodes, strict=True) if node.device == "DLA"} == {
        "node-item-type"
    }
    assert ("Elu", "node-item-type-activation") in [(title[:3], style) for title, style in shown]


# Perfetto -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measured", [False, True])
def test_perfettos_trace_processor_finds_every_slice(digits_model: Path, tmp_path: Path, measured: bool) -> None:
    perfetto = pytest.importorskip("perfetto.trace_processor", reason="Perfetto is not installed (PyPI: perfetto)")
    shell = os.environ.get(TRACE_PROCESSOR) or shutil.which("trace_processor_shell")
    if shell is None:
        pytest.skip(
            f"trace_processor_shell, which the package downloads, is not here; set {TRACE_PROCESSOR} to its path"
        )
    path = tmp_path / "trace.json"
    if measured:
        run(digits_model, random=1, repeat=2, trace=path, **ORIN)
    else:
        dryfit.estimate(digits_model, trace=path, **ORIN)
    tracks, _ = read_trace(path)
    expected = sorted((name, one["name"], one["depth"]) for name, track in tracks.items() for one in track)
    question = "select t.name track, s.name name, s.depth depth from slice s join thread_track k on s.track_id = k.id "
    question += "join thread t using (utid)"
    with perfetto.TraceProcessor(trace=str(path), config=perfetto.TraceProcessorConfig(bin_path=shell)) as processor:
        found = sorted((one.track, one.name, one.depth) for one in processor.query(question))
        errors = list(processor.query("select name, value from stats where severity = 'error' and value > 0"))
    assert found == expected
    assert not errors
