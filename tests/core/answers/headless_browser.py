"""A page in headless Chromium, by the DevTools protocol over a pipe: JSON messages that end with a NUL byte."""

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

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SECONDS = 60
"""How long a page may take for anything: loading, drawing, an answer."""


def browser() -> str | None:
    """The path of a browser; None where none is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Page:
    """A page of the browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._count = 0
        self._session: str | None = None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def open(self, address: str) -> None:
        """Begin to load an address."""
        self._ask("Page.navigate", url=address)

    def value(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            found = self.value(script)
            if found:
                return found
            time.sleep(0.1)
        raise TimeoutError(script)

    def press_with_control(self, key: str, code: int) -> None:
        """Press a key together with Control, as a person does."""
        for kind in ("rawKeyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, modifiers=2)

    def picture(self, path: Path) -> None:
        """Write a picture of the page."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._message())
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _message(self) -> bytes:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], _SECONDS)
            read = os.read(self._from, 1 << 16) if ready else b""
            if not read:
                raise TimeoutError("the browser does not answer")
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return message


@contextlib.contextmanager
def headless_page(folder: Path, width: int = 1400, height: int = 1000) -> Iterator[Page]:
    """A page of a browser of its own, which ends with the context.

    Args:
        folder: for the browser's profile.
        width, height: of the window.
    """
    reads, to_browser = os.pipe()
    from_browser, writes = os.pipe()
    arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder}",
        f"--window-size={width},{height}",
    ]
    # The browser reads from 3 and writes to 4, whatever the numbers of the pipes are here; sh knows only one digit.
    command = ["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", str(browser()), *arguments]
    process = subprocess.Popen(
        command,
        pass_fds=(reads, writes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(reads)
    os.close(writes)
    try:
        yield Page(to_browser, from_browser)
    finally:
        os.close(to_browser)
        os.close(from_browser)
        process.terminate()
        process.wait(_SECONDS)
