"""Headless Chromium, driven by its DevTools protocol over a pipe: JSON messages that end with a NUL byte."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXECUTABLE = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
"""Path of a browser; None where none is installed."""

TIMEOUT_S = 60
"""How long a page may take for anything: loading, drawing, an answer."""


class Tab:
    """A tab of the browser, with the errors and warnings that its console showed."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self._seen: set[str] = set()
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a method of the protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> Any:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], TIMEOUT_S)
            read = os.read(self._from, 1 << 16) if ready else b""
            if not read:
                raise TimeoutError("the browser does not answer")
            self._rest += read
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        method, told = message.get("method", ""), message.get("params", {})
        self._seen.add(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])
        return message

    def open(
        self, page: Path | str, *, width: int = 1440, height: int = 900, is_dark: bool = False, runs: bool = True
    ) -> None:
        """Open a file or an address at a size of the window, in the light or dark theme, with scripts or without."""
        theme = "dark" if is_dark else "light"
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not runs)
        self._seen.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        while "Page.loadEventFired" not in self._seen:
            self._receive()

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            found = self.run(script)
            if found:
                return found
            time.sleep(0.1)
        raise TimeoutError(script)

    def key(self, key: str, *, with_control: bool = False) -> None:
        """Press a key, alone a key that is no letter."""
        text = {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Escape": 27, "ArrowDown": 40}.get(key) or ord(key.upper()[0])
        for kind in ("rawKeyDown" if with_control else "keyDown", "keyUp"):
            given = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 2 * with_control}
            self.call("Input.dispatchKeyEvent", type=kind, **given, **(text if kind == "keyDown" else {}))

    def type(self, text: str) -> None:
        """Type text where the focus is."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click with the mouse at the middle of an element."""
        box = self.run(f"(({selector}).getBoundingClientRect()).toJSON()")
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **place)

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def screenshot(self, path: Path) -> None:
        """Write a picture of what is seen of the page."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """A tab of a browser that keeps its files in a folder, and ends with the context."""
    reads, to_browser = os.pipe()
    from_browser, writes = os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    flags += ["--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
    # The browser reads from 3 and writes to 4, whatever the numbers of the pipes are here; sh knows only one digit.
    command = ["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", str(EXECUTABLE), *flags]
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, pass_fds=(reads, writes), **silent)
    os.close(reads)
    os.close(writes)
    try:
        yield Tab(to_browser, from_browser)
    finally:
        os.close(to_browser)
        os.close(from_browser)
        process.terminate()
        process.wait(TIMEOUT_S)
