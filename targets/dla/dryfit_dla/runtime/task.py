"""One run of a module: which memory it reads and writes. cuDLA's `cudlaTask`, without the events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.errors import UnknownNameError
from dryfit_dla.loadable import LoadableTensor
from dryfit_dla.runtime.memory import RegisteredMemory
from dryfit_dla.runtime.module import Module
from dryfit_dla.runtime.status import DlaError, Status

if TYPE_CHECKING:
    from dryfit_dla.runtime.device import Device

Memories = Sequence[RegisteredMemory] | Mapping[str, RegisteredMemory]
"""One memory for each input or output, in the module's order or by name."""


@attrs.frozen(eq=False)
class Task:
    """What is to run.

    Attributes:
        module: loaded on the core that it is submitted to.
        inputs: memory that holds the inputs, in their formats, when the task runs.
        outputs: memory that the outputs are written to, in their formats.
    """

    module: Module
    inputs: Memories
    outputs: Memories


@attrs.frozen(eq=False)
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
            or read-only, a name is not the module's, or an output lies where another output or an input lies.
    """
    module = task.module
    if not isinstance(module, Module) or not device.has_module(module):
        raise DlaError(
            Status.INVALID_MODULE,
            "A task runs a module that its core has loaded",
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
                "An output is written to memory that can be written",
                where=_where("output", tensor, module),
                found="a read-only buffer",
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
            f"A task gives one memory for each {role} of its module",
            where=f"module {module.name!r}",
            found=f"{len(memories)} memories",
            allowed=f"{len(tensors)}: {', '.join(repr(tensor.name) for tensor in tensors)}",
        )
    for tensor, memory in zip(tensors, memories, strict=True):
        _require_fitting(memory, tensor, _where(role, tensor, module), device)
    return memories


def _listed(given: Any, role: str, module: Module) -> list[RegisteredMemory]:
    if not isinstance(given, Iterable):
        raise DlaError(
            Status.INVALID_PARAM,
            f"A task gives its {role}s as a sequence, or by name",
            where=f"module {module.name!r}",
            found=type(given).__name__,
            allowed="a sequence of memories, or a mapping of names to memories",
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
            "A task uses memory that is registered on its core",
            where=where,
            found=f"memory of {memory.device.name}" if is_elsewhere else f"{type(memory).__name__}, not registered",
            allowed=f"memory of {device.name}",
            remedy="Give what device.register(buffer) returns",
        )
    if memory.size_bytes < tensor.size_bytes:
        raise DlaError(
            Status.INVALID_PARAM,
            "The memory is too small for the tensor in its format",
            where=where,
            found=f"{memory.size_bytes} bytes",
            allowed=f"at least {tensor.size_bytes}: {tensor.dtype.name} {tensor.shape} in {tensor.format}, padded to "
            f"{tensor.memory_shape}",
            remedy="Register a buffer of the tensor's size_bytes",
        )


def _require_apart(inputs: Sequence[RegisteredMemory], outputs: Sequence[RegisteredMemory], module: Module) -> None:
    """Refuse outputs that share bytes: a device writes while it reads, so what becomes of them would be a race."""
    for first, second in _pairs(inputs, outputs):
        if first.overlaps(second):
            raise DlaError(
                Status.INVALID_PARAM,
                "An output of a task has memory of its own",
                where=f"module {module.name!r}",
                found="bytes that are also those of an input or of another output",
            )


def _pairs(
    inputs: Sequence[RegisteredMemory], outputs: Sequence[RegisteredMemory]
) -> Iterator[tuple[RegisteredMemory, RegisteredMemory]]:
    for index, output in enumerate(outputs):
        for other in (*inputs, *outputs[:index]):
            yield output, other


def _where(role: str, tensor: LoadableTensor, module: Module) -> str:
    return f"{role} {tensor.name!r} of module {module.name!r}"
