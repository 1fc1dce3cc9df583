"""Trials of quantized networks that do not depend on each other: in worker processes, with results that are kept.

A trial is known by a digest of all that it depends on. So a run that was stopped repeats its decisions from what is
kept, and goes on where there is nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from dryfit.answers.kept_results import kept_bytes, kept_results
from dryfit.atomic_file import write_atomically
from dryfit.network.tensor import Array

Trial = Callable[[], Any]
"""With an executor, it and its result are pickled."""
Arrays = Mapping[str, Array]


def digest(*parts: str | bytes) -> str:
    """Return a digest of texts and contents."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:32]


class Trials:
    """Runs trials and keeps what they find.

    Args:
        fingerprint: texts of all that every trial depends on, by what they are.
        place: file of the results, written after each trial; None for none.
        executor: runs the trials; None for this process.
        is_stopped: whether the run should stop; asked after each trial.
        resume: whether results in the file are used.

    Attributes:
        reused: digests of the results of an earlier run that were used.
        num_run: number of trials that this run ran.

    Raises:
        CalibrationError: The file is damaged, or belongs to another run.
    """

    def __init__(
        self,
        fingerprint: Mapping[str, str],
        place: Path | None = None,
        executor: Executor | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        *,
        resume: bool = False,
    ) -> None:
        self._fingerprint = fingerprint
        self._place = place
        self._executor = executor
        self._is_stopped = is_stopped
        self._kept: dict[str, Arrays] = {}
        self.reused: set[str] = set()
        self.num_run = 0
        if resume and place is not None and place.exists():
            _, arrays = kept_results(place.read_bytes(), fingerprint, str(place))
            for name, array in arrays.items():
                key, _, own = name.partition(" ")
                self._kept.setdefault(key, {})
                self._kept[key] = {**self._kept[key], own: array}
        self._earlier = frozenset(self._kept)

    def found(self, trials: Sequence[tuple[str, Trial]], kept: Callable[[Any], Arrays]) -> list[Arrays]:
        """Return what is kept of trials, in their order.

        Args:
            trials: digest of each, and the trial.
            kept: makes what is kept of a result, in this process.

        Raises:
            KeyboardInterrupt: The run was stopped; the notes of the exception state what was kept.
        """
        waiting = {key: trial for key, trial in trials if key not in self._kept}
        self.reused |= self._earlier & {key for key, _ in trials}
        for key, result in self._results(waiting):
            self._kept[key] = kept(result)
            self.num_run += 1
            if self._place is not None:
                arrays = {f"{key} {name}": array for key, one in self._kept.items() for name, array in one.items()}
                write_atomically(self._place, [kept_bytes(self._fingerprint, arrays)])
            if self._is_stopped():
                raise self.interruption()
        return [self._kept[key] for key, _ in trials]

    def interruption(self) -> KeyboardInterrupt:
        """Return the exception of a run that was stopped."""
        stopped = KeyboardInterrupt()
        text = f"{len(self._kept)} trials were run."
        if self._place is not None:
            text += f" They are kept in {self._place}; add --resume to go on."
        stopped.add_note(text)
        return stopped

    def _results(self, waiting: Mapping[str, Trial]) -> Iterator[tuple[str, Any]]:
        if self._executor is None:
            for key, trial in waiting.items():
                yield key, trial()
            return
        futures = {key: self._executor.submit(trial) for key, trial in waiting.items()}
        try:
            for key in list(futures):
                yield key, futures.pop(key).result()
        finally:
            for future in futures.values():
                future.cancel()
