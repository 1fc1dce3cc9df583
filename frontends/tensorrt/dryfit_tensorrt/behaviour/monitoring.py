"""Loggers, profilers, progress monitors and error recorders: what a program overrides to be told what happens."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dryfit
from dryfit_tensorrt.behaviour.objects import Base, Scoped, called_back

_LETTERS = {"INTERNAL_ERROR": "F", "ERROR": "E", "WARNING": "W", "INFO": "I", "VERBOSE": "V"}


class ILogger(Base, Scoped):
    """A logger that a program implements: `log(severity, msg)`."""

    Severity: Any
    _beyond_tables = frozenset({"log", "Severity", "__enter__", "__exit__"})

    def log(self, severity: Any, msg: str) -> None:
        """Receive a message. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override log(severity, msg)")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        return None


class Logger(Base):
    """Prints messages of at least a severity on standard error."""

    def __init__(self, min_severity: Any = None) -> None:
        self._least = self._api.Severity.WARNING if min_severity is None else self._api.Severity(int(min_severity))

    @property
    def min_severity(self) -> Any:
        """The least severe messages that are printed."""
        return self._least

    @min_severity.setter
    def min_severity(self, severity: Any) -> None:
        self._least = self._api.Severity(int(severity))

    def log(self, severity: Any, msg: str) -> None:
        """Print a message."""
        if int(severity) <= int(self._least):
            now = time.strftime("%m/%d/%Y-%H:%M:%S")
            sys.stderr.write(f"[{now}] [TRT] [{_LETTERS[severity.name]}] {msg}\n")


def report(owner: Any, severity: str, message: str) -> None:
    """Log a message through the logger of an object; an exception in the program's logger is printed.

    Args:
        owner: an object with a `_logger`.
        severity: name of a member of `Severity`.
        message: the text.
    """
    logger = getattr(owner, "_logger", None)
    if logger is not None:
        called_back(logger.log, owner._api.Severity[severity], message, otherwise=None)


def report_failure(owner: Any, error: dryfit.DryfitError) -> None:
    """Log an error of dryfit's, and hand it to the error recorder of an object that has one."""
    report(owner, "ERROR", f"[{owner._api.level.version}] {error}")
    recorder = getattr(owner, "_recorder", None)
    if recorder is not None:
        called_back(recorder.report_error, owner._api.ErrorCodeTRT.INTERNAL_ERROR, str(error), otherwise=False)


class _Forwarding(logging.Handler):
    """Hands what dryfit logs to the program's logger: its steps as VERBOSE, since TensorRT's INFO has other lines."""

    def __init__(self, owner: Any) -> None:
        super().__init__(logging.DEBUG)
        self._owner = owner

    def emit(self, record: logging.LogRecord) -> None:
        severity = (
            "ERROR"
            if record.levelno >= logging.ERROR
            else "WARNING"
            if record.levelno >= logging.WARNING
            else "VERBOSE"
        )
        report(self._owner, severity, record.getMessage())


@contextmanager
def forwarded_log(owner: Any) -> Iterator[None]:
    """Hand what dryfit logs inside this context to the logger of an object, and to nobody else."""
    source = logging.getLogger("dryfit")
    handler, level, propagates = _Forwarding(owner), source.level, source.propagate
    source.addHandler(handler)
    source.setLevel(logging.DEBUG)
    source.propagate = False
    try:
        yield
    finally:
        source.removeHandler(handler)
        source.setLevel(level)
        source.propagate = propagates


class IErrorRecorder(Base):
    """Errors that a program collects: to be implemented by the program."""

    MAX_DESC_LENGTH = 127

    def __init__(self) -> None:
        """Make a recorder."""

    def num_errors(self) -> int:
        """Return the number of errors. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override num_errors()")

    def get_error_code(self, index: int = 0) -> Any:
        """Return the code of an error. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override get_error_code(index)")

    def get_error_desc(self, index: int = 0) -> str:
        """Return the text of an error. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override get_error_desc(index)")

    def has_overflowed(self) -> bool:
        """Return whether errors were lost. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override has_overflowed()")

    def clear(self) -> None:
        """Forget the errors. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override clear()")

    def report_error(self, code: Any, description: str) -> bool:
        """Receive an error. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override report_error(code, description)")


class IProfiler(Base):
    """Receives the time of each engine layer after a run: to be implemented by the program."""

    def __init__(self) -> None:
        """Make a profiler."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Receive the time of an engine layer in ms. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override report_layer_time(layer_name, ms)")


class Profiler(Base):
    """Prints the time of each engine layer."""

    def __init__(self) -> None:
        """Make a profiler."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Print the time of an engine layer in ms, as measured on this machine."""
        sys.stdout.write(f"{layer_name}: {ms}ms\n")


class IProgressMonitor(Base):
    """Receives the progress of a build and can cancel it: to be implemented by the program."""

    def __init__(self) -> None:
        """Make a monitor."""

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Receive the start of a phase. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override phase_start")

    def step_complete(self, phase_name: str, step: int) -> bool:
        """Receive the end of a step; False cancels. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override step_complete")

    def phase_finish(self, phase_name: str) -> None:
        """Receive the end of a phase. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override phase_finish")


class MonitorOfProgram(dryfit.ProgressMonitor):
    """Hands the progress of a build to a program's monitor."""

    def __init__(self, monitor: Any) -> None:
        self._monitor = monitor

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Hand on the start of a phase."""
        called_back(self._monitor.phase_start, phase_name, parent_phase, num_steps, otherwise=None)

    def step_complete(self, phase_name: str, step: int) -> bool:
        """Hand on the end of a step; an exception cancels."""
        return bool(called_back(self._monitor.step_complete, phase_name, step, otherwise=False))

    def phase_finish(self, phase_name: str) -> None:
        """Hand on the end of a phase."""
        called_back(self._monitor.phase_finish, phase_name, otherwise=None)


class IDebugListener(Base):
    """Receives the values of debug tensors: to be implemented by the program."""

    def __init__(self) -> None:
        """Make a listener."""

    def process_debug_tensor(self, addr: int, location: Any, type: Any, shape: Any, name: str, stream: int) -> bool:
        """Receive a tensor at an address; False fails the run. To be overridden."""
        raise NotImplementedError(f"{self.__class__.__name__} must override process_debug_tensor")


class IGpuAllocator(Base):
    """An allocator of a program. It is accepted and not called: memory is allocated on the host."""

    def __init__(self) -> None:
        """Make an allocator."""


class IOutputAllocator(Base):
    """Provides the memory of outputs whose size is known only after a run: to be implemented by the program."""

    _beyond_tables = frozenset({"reallocate_output", "reallocate_output_async", "notify_shape"})

    def __init__(self) -> None:
        """Make an allocator."""

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        """Return the address of memory for an output. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override reallocate_output")

    def reallocate_output_async(self, tensor_name: str, memory: int, size: int, alignment: int, stream: int) -> int:
        """Return the address of memory for an output; calls `reallocate_output` unless overridden."""
        del stream
        return self.reallocate_output(tensor_name, memory, size, alignment)

    def notify_shape(self, tensor_name: str, shape: Any) -> None:
        """Receive the shape of an output. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override notify_shape")


class IStreamReader(Base):
    """A source of an engine file: to be implemented by the program."""

    def __init__(self) -> None:
        """Make a reader."""

    def read(self, size: int) -> bytes:
        """Return the next bytes. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override read(size)")


class IStreamReaderV2(Base):
    """A source of an engine file that can be positioned: to be implemented by the program."""

    def __init__(self) -> None:
        """Make a reader."""

    def read(self, num_bytes: int, stream: int) -> bytes:
        """Return the next bytes. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override read(num_bytes, stream)")

    def seek(self, offset: int, where: Any) -> bool:
        """Move to a position. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override seek(offset, where)")


class IStreamWriter(Base):
    """A destination of an engine file: to be implemented by the program."""

    def __init__(self) -> None:
        """Make a writer."""

    def write(self, data: bytes) -> int:
        """Take bytes and return how many were written. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override write(data)")
