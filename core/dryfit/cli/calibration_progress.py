"""How a calibration shows where it stands, is stopped between two samples, and keeps what it has gathered."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import IO, Any, Self

from dryfit.calibration.jobs import SampleCount
from dryfit.cli.console import print_note


class Interruption:
    """Lets Ctrl-C take effect between two samples, inside a `with` statement; a second one takes effect at once.

    So it does with the signal by which batch systems and service managers end a program, SIGTERM.

    Attributes:
        is_asked: whether it was pressed.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._ask) for one in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  as signal handlers are called
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


class SampleProgress(SampleCount):
    """A bar with images a second and the time that is left, on a terminal; elsewhere nothing.

    Args:
        total: how many samples there are, those of an earlier run included.
        done: how many of them an earlier run has seen.
        interruption: ends the samples when it is asked for.
        stream: where to draw; standard error when absent.
        title: what is done, before the bar.
    """

    def __init__(
        self,
        total: int,
        done: int,
        interruption: Interruption,
        stream: IO[str] | None = None,
        title: str = "Calibrating",
    ) -> None:
        super().__init__(total, done)
        self._title = title
        self._interruption = interruption
        self._stream = stream or sys.stderr

    def __enter__(self) -> Self:
        self._interruption.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._interruption.__exit__(kind, error, trace)

    @property
    def is_stopped(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interruption.is_asked

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Draws the bar inside a `with` statement, and counts the seconds from its beginning."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(file=self._stream)
        self._bar = Progress(
            TextColumn(self._title),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        with self._bar, super().shown():
            self._task = self._bar.add_task("", total=self.total, completed=self.done, speed="")
            yield

    def advance(self, samples: int, images: int) -> None:
        """Count what was seen since the last time, while the bar is shown."""
        super().advance(samples, images)
        self._bar.update(self._task, advance=samples, speed=f"{self.images_per_second:.1f} images/s")

    def tell(self, text: str) -> None:
        """A note on stderr."""
        print_note(text)
