"""Tasks, which say what memory a run of a module reads and writes, and submissions, which track their progress.

A task is cuDLA's `cudlaTask`, without the events.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dryfit.attrs_classes import frozen
from dryfit.errors import UnknownNameError
from dryfit_dla.loadable import LoadableTensor
from dryfit_dla.runtime.event import RUNTIME_LOCK, Event
from dryfit_dla.runtime.memory import Module, RegisteredMemory
from dryfit_dla.runtime.status import DlaError, Status

if TYPE_CHECKING:
    from dryfit_dla.runtime.device import Device
    from dryfit_dla.runtime.task_queue import TaskQueue


Memories = Sequence[RegisteredMemory] | Mapping[str, RegisteredMemory]
"""One memory for each input or output, in the module's order or by name."""


@frozen(eq=False)
class Task:
    """One run of a module.

    Attributes:
        module: a module that is loaded on the core.
        inputs: memory that holds the inputs, in their formats, when the task runs.
        outputs: memory that the outputs are written to, in their formats.
    """

    module: Module
    inputs: Memories
    outputs: Memories


@frozen(eq=False)
class BoundTask:
    """A task that was checked against its core.

    Attributes:
        module: what runs.
        inputs, outputs: in the module's order.
    """

    module: Module
    inputs: Sequence[RegisteredMemory]
    outputs: Sequence[RegisteredMemory]

    def uses(self, what: Module | RegisteredMemory) -> bool:
        """Whether it needs a module or a memory."""
        return any(what is one for one in (self.module, *self.inputs, *self.outputs))

    def execute(self) -> None:
        """Run it.

        Raises:
            DryfitError: a kernel fails.
        """
        self.module.execute([memory.data for memory in self.inputs], [memory.data for memory in self.outputs])


def bind_task(task: Task, device: Device) -> BoundTask:
    """The task with its memories in order, if a core can run it.

    Raises:
        DlaError: the module is not loaded there, a tensor has no memory or one that is not registered there, too small
            or read-only, a name is not the module's, or an output overlaps another output or an input.
    """
    module = task.module
    if not isinstance(module, Module) or not device.has_module(module):
        raise DlaError(
            Status.INVALID_MODULE,
            "The task's module must be loaded on this core",
            where=device.name,
            found=module,
            remedy="Load the loadable on this core: device.load(loadable)",
        )
    inputs = _in_order(task.inputs, module.input_attributes, "input", module, device)
    outputs = _in_order(task.outputs, module.output_attributes, "output", module, device)
    for tensor, memory in zip(module.output_attributes, outputs, strict=True):
        if not memory.data.flags.writeable:
            raise DlaError(
                Status.INVALID_PARAM,
                "An output buffer must be writable",
                where=_where("output", tensor, module),
                found="a read-only buffer",
                remedy="Register a writable buffer for the output",
            )
    _require_apart(inputs, outputs, module)
    return BoundTask(module, inputs, outputs)


def _in_order(
    given: Memories, tensors: Sequence[LoadableTensor], role: str, module: Module, device: Device
) -> list[RegisteredMemory]:
    memories = _by_name(given, tensors, role, module) if isinstance(given, Mapping) else _listed(given, role, module)
    if len(memories) != len(tensors):
        raise DlaError(
            Status.INVALID_PARAM,
            f"A task must have one memory for each {role} of its module",
            where=f"module {module.name!r}",
            found=f"{len(memories)} memories",
            allowed=f"{len(tensors)}: {', '.join(repr(tensor.name) for tensor in tensors)}",
            remedy=f"Pass one registered memory per {role}",
        )
    for tensor, memory in zip(tensors, memories, strict=True):
        _require_fitting(memory, tensor, _where(role, tensor, module), device)
    return memories


def _listed(given: Any, role: str, module: Module) -> list[RegisteredMemory]:
    if not isinstance(given, Iterable):
        raise DlaError(
            Status.INVALID_PARAM,
            f"A task's {role}s must be a sequence or a mapping by name",
            where=f"module {module.name!r}",
            found=type(given).__name__,
            allowed="a sequence of memories, or a mapping of names to memories",
            remedy=f"Pass the {role}s as a list in the module's order, or as a dict by name",
        )
    return list(given)


def _by_name(
    given: Mapping[str, RegisteredMemory], tensors: Sequence[LoadableTensor], role: str, module: Module
) -> list[RegisteredMemory]:
    known = [tensor.name for tensor in tensors]
    for name in given:
        if name not in known:
            error = UnknownNameError(role, str(name), known, where=f"module {module.name!r}")
            raise DlaError.chained(Status.INVALID_PARAM, error) from error
    return [given[name] for name in known if name in given]


def _require_fitting(memory: Any, tensor: LoadableTensor, where: str, device: Device) -> None:
    if not isinstance(memory, RegisteredMemory) or not device.has_memory(memory):
        is_elsewhere = isinstance(memory, RegisteredMemory) and memory.device is not device
        raise DlaError(
            Status.INVALID_ADDRESS,
            "A task's memory must be registered on its core",
            where=where,
            found=f"memory of {memory.device.name}" if is_elsewhere else f"{type(memory).__name__}, not registered",
            allowed=f"memory of {device.name}",
            remedy="Pass the memory that device.register(buffer) returns",
        )
    if memory.size_bytes < tensor.size_bytes:
        raise DlaError(
            Status.INVALID_PARAM,
            "The memory is too small for the tensor in this format",
            where=where,
            found=f"{memory.size_bytes} bytes",
            allowed=f"at least {tensor.size_bytes}: {tensor.dtype.text} {tensor.shape} in {tensor.format}, "
            f"padded to {tensor.memory_shape}",
            remedy="Register a buffer of the tensor's size_bytes",
        )


def _require_apart(inputs: Sequence[RegisteredMemory], outputs: Sequence[RegisteredMemory], module: Module) -> None:
    """Refuse outputs that share bytes: a device writes while it reads, so what becomes of them would be a race."""
    for first, second in _pairs(inputs, outputs):
        if first.overlaps(second):
            raise DlaError(
                Status.INVALID_PARAM,
                "An output must not share memory with an input or another output",
                where=f"module {module.name!r}",
                found="overlapping bytes",
                remedy="Register separate buffers",
            )


def _pairs(
    inputs: Sequence[RegisteredMemory], outputs: Sequence[RegisteredMemory]
) -> Iterator[tuple[RegisteredMemory, RegisteredMemory]]:
    for index, output in enumerate(outputs):
        for other in (*inputs, *outputs[:index]):
            yield output, other


def _where(role: str, tensor: LoadableTensor, module: Module) -> str:
    return f"{role} {tensor.name!r} of module {module.name!r}"


class Stage(enum.Enum):
    """How far a submission is."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


class Submission:
    """What `Device.submit` took. Its tasks run one after the other, when all events that it waits for have happened.

    Attributes:
        started: happens when its first task is about to run.
        finished: happens when its last task has run. Others can wait for it: `submit(..., wait=[first.finished])`.
        tasks: what runs.
        waits: events that it waits for.
        signals: events that it signals at its end, `finished` among them.
        before: the submission of the same core that has to end first, while there is one.
        stage: how far it is.
    """

    def __init__(
        self, queue: TaskQueue, tasks: Sequence[BoundTask], waits: Sequence[Event], signals: Sequence[Event]
    ) -> None:
        self._queue = queue
        self.started, self.finished = Event("started"), Event("finished")
        self.tasks, self.waits, self.signals = tuple(tasks), tuple(waits), (*signals, self.finished)
        self.before: Submission | None = None
        self.stage = Stage.QUEUED

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until its last task has run.

        Args:
            timeout: seconds of this machine's time; None waits as long as it takes.

        Returns:
            Whether it ended before the timeout.

        Raises:
            DlaError: it was cancelled, a task failed, or what it waited for did.
        """
        return self.finished.wait(timeout)

    @property
    def status(self) -> Status | None:
        """How it ended; None while it has not."""
        with RUNTIME_LOCK:
            if self.stage is not Stage.ENDED:
                return None
            return Status.SUCCESS if self.finished.error is None else self.finished.error.status

    def cancel(self) -> bool:
        """Take it back, if it has not begun. Submissions that wait for it end with the same status.

        Returns:
            Whether it will not run.
        """
        with RUNTIME_LOCK:
            if self.stage is Stage.QUEUED:
                self._queue.remove(self)
                self.end(
                    DlaError(
                        Status.CANCELLED,
                        "The submission was cancelled",
                        where=self._queue.name,
                        remedy="Submit it again",
                    )
                )
            return self.status is Status.CANCELLED

    # What the queue uses, with the runtime's lock held ----------------------------------------------------------------

    def uses(self, what: Module | RegisteredMemory) -> bool:
        """Whether one of its tasks needs a module or a memory."""
        return any(task.uses(what) for task in self.tasks)

    @property
    def is_ready(self) -> bool:
        """Whether all that it waits for has happened, or cannot any more."""
        return all(event.is_settled for event in self.waits)

    def begin(self) -> DlaError | None:
        """It is about to run; or an error, when something that it waits for failed."""
        failed = next((event.error for event in self.waits if event.error is not None), None)
        if failed is None:
            self.started.settle(None)
            return None
        first = failed.__cause__ if isinstance(failed.__cause__, DlaError) else failed
        error = DlaError(
            failed.status,
            "The submission did not run because an event that it waits for failed or was cancelled",
            where=self._queue.name,
            found=first,
            remedy="Fix the submission or event that failed, and submit again",
        )
        error.__cause__ = first
        return error

    def end(self, error: DlaError | None) -> None:
        """It ended: signal its events, or let them fail."""
        self.stage, self.before = Stage.ENDED, None
        if not self.started.is_settled:
            self.started.settle(error)
        for event in self.signals:
            event.settle(error)
