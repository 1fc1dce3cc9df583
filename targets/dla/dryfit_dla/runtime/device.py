"""One core with its modules, registered memory and queue: cuDLA's device handle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dryfit.engine.file_source import EngineSource
from dryfit.errors import EngineFileError
from dryfit_dla.loadable import Loadable
from dryfit_dla.loadable_file import read_loadable
from dryfit_dla.runtime.core_limits import require_room, require_same_device
from dryfit_dla.runtime.event import RUNTIME_LOCK, Event, wait_for_all
from dryfit_dla.runtime.memory import Module, RegisteredMemory, raw_bytes
from dryfit_dla.runtime.status import DlaError, Status
from dryfit_dla.runtime.submission import Submission, Task, bind_task
from dryfit_dla.runtime.task_queue import TaskQueue

if TYPE_CHECKING:
    from dryfit_dla.runtime.board import Board


class Device:
    """One core of a board. Made by `Board`.

    All methods are thread-safe. Cores run concurrently; each core executes its submissions in order. Results are
    bit-identical to those of the engine that the loadables were exported from, whatever else runs.

    Attributes:
        board: the board that it belongs to.
        core: its number.
        name: used in error messages.

    Example:
        >>> module = device.load("model.segment0.loadable")
        >>> buffers = [bytearray(tensor.size_bytes) for tensor in (*module.input_attributes, *module.output_attributes)]
        >>> source, result = map(device.register, buffers)
        >>> device.submit(Task(module, [source], [result])).wait()
        True
    """

    def __init__(self, board: Board, core: int) -> None:
        self.board = board
        self.core = core
        self.name = f"DLA core {core} of {board.platform.name}"
        self._modules: list[Module] = []
        self._memories: dict[int, RegisteredMemory] = {}
        self._queue = TaskQueue(self.name)
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<Device {self.name}, {len(self.modules)} modules>"

    # Modules --------------------------------------------------------------------------------------------------------

    @property
    def modules(self) -> Sequence[Module]:
        """The loaded modules, in the order in which they were loaded."""
        with RUNTIME_LOCK:
            return tuple(self._modules)

    def load(self, source: EngineSource | Loadable) -> Module:
        """Load a loadable.

        Args:
            source: path of its file, the file's bytes, or the result of `read_loadable`.

        Raises:
            DlaError: the core has its maximum number of loadables, or not enough memory for one more; the loadable is
                for another kind of device or newer software; or the board is closed. INVALID_PARAM with an
                EngineFileError as its cause: the file does not exist or is not a loadable; see
                `dryfit_dla.loadable_file.read_loadable`.
        """
        loadable = source if isinstance(source, Loadable) else _read(source)
        require_same_device(loadable, self.board, self.name)
        with RUNTIME_LOCK:
            self._require_room(loadable)
        module = Module(self, loadable, self.board.num_threads)
        with RUNTIME_LOCK:
            self._require_room(loadable)
            self._modules.append(module)
        return module

    def unload(self, module: Module) -> None:
        """Unload a module from this core.

        Raises:
            DlaError: a submission that has not ended uses the module, or it is not loaded here.
        """
        with RUNTIME_LOCK:
            if module not in self._modules:
                raise DlaError(
                    Status.INVALID_MODULE,
                    "The module is not loaded on this core",
                    where=self.name,
                    found=module,
                    remedy="Unload it from the core that it is loaded on, and only once",
                )
            self._require_unused(module, "module")
            self._modules.remove(module)

    def has_module(self, module: Module) -> bool:
        """Whether a module is loaded here."""
        return module in self.modules

    # Memory ---------------------------------------------------------------------------------------------------------

    def register(self, buffer: Any) -> RegisteredMemory:
        """Register a buffer for tasks of this core, without a copy.

        Its bytes are in the device's format, with the strides and padding of the tensor's attributes;
        `LoadableTensor.write` and `read` convert.

        Args:
            buffer: a numpy array, or anything with the buffer protocol, `__array_interface__` or DLPack in the CPU's
                memory; C-contiguous.

        Raises:
            DlaError: the buffer is not supported, not contiguous, empty or already registered, or the board is closed.
        """
        memory = RegisteredMemory(self, raw_bytes(buffer))
        with RUNTIME_LOCK:
            self._require_open()
            if memory.address in self._memories:
                raise DlaError(
                    Status.MEMORY_REGISTERED,
                    "The buffer is already registered",
                    where=self.name,
                    remedy="Use the memory that register returned, or unregister it first",
                )
            self._memories[memory.address] = memory
        return memory

    def unregister(self, memory: RegisteredMemory) -> None:
        """Unregister a buffer.

        Raises:
            DlaError: a submission that has not ended uses it, or it is not registered here.
        """
        with RUNTIME_LOCK:
            if not self.has_memory(memory):
                raise DlaError(
                    Status.INVALID_ADDRESS,
                    "The memory is not registered on this core",
                    where=self.name,
                    found=memory,
                    remedy="Unregister it on the core that it is registered on, and only once",
                )
            self._require_unused(memory, "memory")
            del self._memories[memory.address]

    def has_memory(self, memory: RegisteredMemory) -> bool:
        """Whether a memory is registered here."""
        with RUNTIME_LOCK:
            return self._memories.get(memory.address) is memory

    # Tasks ----------------------------------------------------------------------------------------------------------

    def submit(
        self, tasks: Task | Sequence[Task], wait: Sequence[Event] = (), signal: Sequence[Event] = ()
    ) -> Submission:
        """Queue tasks, and return at once.

        They run in order, after everything submitted to this core before, once all events of `wait` have occurred.
        Without tasks, the submission only waits for events and signals events.

        Args:
            tasks: one or several.
            wait: events that must occur before the first task.
            signal: events to signal after the last task; each event can be signaled by one submission only.

        Raises:
            DlaError: see `bind_task` and `TaskQueue.put`; nothing is queued then.
                INVALID_PARAM with an UnknownNameError as its cause: a task names a tensor that its module does not
                have.
        """
        asked = _tasks(tasks)
        with RUNTIME_LOCK:
            self._require_open()
            return self._queue.put([bind_task(task, self) for task in asked], tuple(wait), tuple(signal))

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait until everything submitted so far has ended.

        Args:
            timeout: seconds of this machine's time; None waits as long as it takes.

        Returns:
            Whether all ended before the timeout.

        Raises:
            DlaError: the first error of a task on this core since the last call. Cancelled submissions do not count
                as failures.
        """
        with RUNTIME_LOCK:
            submitted = self._queue.unfinished
        if not wait_for_all([one.finished for one in submitted], timeout):
            return False
        with RUNTIME_LOCK:
            failure = self._queue.take_failure()
        if failure is not None:
            raise failure
        return True

    def close(self) -> None:
        """Cancel submissions that have not started, wait for the others, unload all modules and free all memory."""
        with RUNTIME_LOCK:
            self._is_closed = True
        self._queue.close()
        with RUNTIME_LOCK:
            self._modules.clear()
            self._memories.clear()

    # Inside ---------------------------------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._is_closed:
            raise DlaError(Status.INVALID_DEVICE, "The board is closed", where=self.name, remedy="Make a new Board")

    def _require_room(self, loadable: Loadable) -> None:
        self._require_open()
        require_room(loadable, [module.loadable for module in self._modules], self.board, self.name)

    def _require_unused(self, what: Module | RegisteredMemory, noun: str) -> None:
        if self._queue.uses(what):
            raise DlaError(
                Status.DLA_PROCESSOR_BUSY,
                f"The {noun} is in use by a submission that has not ended",
                where=self.name,
                found=what,
                remedy="Wait for the submission with synchronize(), or cancel it",
            )


def _read(source: EngineSource) -> Loadable:
    """The loadable of a file or its bytes, with errors that have a status."""
    try:
        return read_loadable(source)
    except EngineFileError as error:
        raise DlaError.chained(Status.INVALID_PARAM, error) from error


def _tasks(tasks: Any) -> list[Task]:
    """What was submitted, as a list of tasks.

    Raises:
        DlaError: it is something else.
    """
    asked = [tasks] if isinstance(tasks, Task) or not isinstance(tasks, Iterable) else list(tasks)
    for one in asked:
        if not isinstance(one, Task):
            raise DlaError(
                Status.INVALID_PARAM,
                "The argument of submit must be a task or a sequence of tasks",
                where="submit",
                found=f"{type(one).__name__} {str(one)[:100]!r}",
                allowed="Task(module, inputs, outputs), a sequence of them, or [] for events only",
                remedy="Make a Task of the module and its registered memories",
            )
    return asked
