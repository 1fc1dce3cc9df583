"""Headless Chromium, driven over its DevTools protocol: just enough to test the pages of reports."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

EXECUTABLE = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
TIMEOUT_S = 60


class WebSocket:
    """The client's side of a websocket on this machine."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self._socket = socket.create_connection((parts.hostname, parts.port), timeout=TIMEOUT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {parts.path} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._file = self._socket.makefile("rb")
        assert b"101" in self._file.readline()
        while self._file.readline().strip():
            pass

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        length = (
            bytes([0x80 | size])
            if size < 126
            else struct.pack("!BH", 0xFE, size)
            if size < 1 << 16
            else struct.pack("!BQ", 0xFF, size)
        )
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self._socket.sendall(b"\x81" + length + mask + masked)

    def receive(self) -> str:
        message = b""
        while True:
            first, second = self._file.read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self._file.read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._file.read(8))
            data = self._file.read(size)
            if first & 0x0F in (0, 1):
                message += data
                if first & 0x80:
                    return message.decode()

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Tab:
    """A tab of the browser, with the errors that its console showed."""

    def __init__(self, url: str) -> None:
        self._socket = WebSocket(url)
        self._number = 0
        self.errors: list[str] = []
        self._seen: set[str] = set()
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.receive())
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message: Any) -> None:
        method, told = message.get("method", ""), message.get("params", {})
        self._seen.add(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])

    def open(
        self, path: Path, *, width: int = 1440, height: int = 900, is_dark: bool = False, runs: bool = True
    ) -> None:
        """Open a file at a size of the window, in the light or dark theme, with scripts or without."""
        theme = "dark" if is_dark else "light"
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not runs)
        self._seen.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while "Page.loadEventFired" not in self._seen:
            self._note(json.loads(self._socket.receive()))

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def key(self, key: str) -> None:
        """Press a key that is no letter."""
        text = {"text": "\r"} if key == "Enter" else {}
        codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40}
        for kind in ("keyDown", "keyUp"):
            given = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, 0)}
            self.call("Input.dispatchKeyEvent", type=kind, **given, **(text if kind == "keyDown" else {}))

    def type(self, text: str) -> None:
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
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """A tab of a browser that keeps its files in a folder, and ends with the context."""
    assert EXECUTABLE is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0"]
    command = [EXECUTABLE, *flags, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            tab = Tab(_address(folder / "DevToolsActivePort"))
            yield tab
            tab.close()
        finally:
            process.terminate()


def _address(file: Path) -> str:
    """The websocket of the first tab, once the browser is up."""
    for _ in range(10 * TIMEOUT_S):
        with contextlib.suppress(OSError, IndexError, StopIteration, ValueError):
            connection = http.client.HTTPConnection("127.0.0.1", int(file.read_text().split()[0]), timeout=TIMEOUT_S)
            connection.request("GET", "/json/list")
            tabs = json.loads(connection.getresponse().read())
            connection.close()
            return next(str(one["webSocketDebuggerUrl"]) for one in tabs if one["type"] == "page")
        time.sleep(0.1)
    raise TimeoutError("the browser does not answer")
