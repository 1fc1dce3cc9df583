"""Checks that a kernel computes the result of its layers, and writes nothing but its outputs.

The oracle is `dryfit.reference`: numpy, layer by layer, which shares no code with kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.reference.executor import run_reference
from dryfit.target.kernels import Binding
from dryfit.testing.engine_checks import number_problems
from dryfit.testing.guarded_memory import GuardedArray, guarded_array
from dryfit.testing.kernel_trials import KernelTrial
from dryfit.testing.own_process import about_to_run

Array = np.ndarray[Any, Any]

TOLERANCES: Mapping[DataType, float] = {
    DataType.FLOAT: 2e-5,
    DataType.HALF: 4e-3,
    DataType.BF16: 3.2e-2,
}
"""Type of the activations to the largest error of an output, as a fraction of its largest magnitude.

FLOAT: a sum of 1,000 products in another order differs by about 1,000 * 2^-24 of its largest partial sum at worst.
HALF: the reference rounds after each of at most three layers, the kernel once: 4 * 2^-11, twice over, as a difference
of two tensors may be half as large as each. BF16: the same with 2^-8."""


@frozen(eq=False)
class _Run:
    """A kernel bound to guarded memory.

    Attributes:
        trial: what is run.
        inputs, outputs: tensor name to array.
        packed: tensor name to the array in the format that the kernel declares, where it does.
        workspace: scratch memory.
        schedule: of the one step.
    """

    trial: KernelTrial
    inputs: Mapping[str, GuardedArray]
    outputs: Mapping[str, GuardedArray]
    packed: Mapping[str, GuardedArray]
    workspace: GuardedArray
    schedule: Any

    def results(self) -> dict[str, Array]:
        """Run once, into memory that holds nothing of an earlier run."""
        for output in self.outputs.values():
            output.fill()
        self.schedule.run()
        return {name: output.array.copy() for name, output in self.outputs.items()}


def kernel_problems(trial: KernelTrial, tolerance: float) -> list[str]:
    """Pack, bind and run a kernel with one and two threads, and compare with the reference.

    Args:
        trial: the group and the memory layout.
        tolerance: maximum error of an output, as a fraction of its largest magnitude.
    """
    about_to_run(repr(trial))
    try:
        problems = [*_packing_problems(trial), *_run_problems(trial, tolerance)]
    except Exception as error:  # noqa: BLE001  a target's kernel may raise anything
        problems = [f"{type(error).__name__}: {error}"]
    return [f"{problem}, in {trial!r}" for problem in problems]


def _packing_problems(trial: KernelTrial) -> list[str]:
    """Whether packing twice gives the same plain arrays."""
    first, again = (trial.kernel.pack(trial.group) for _ in range(2))
    found = [
        f"the packed weight {name!r} is {type(array).__name__}, not a plain array"
        for name, array in first.items()
        if not isinstance(array, np.ndarray) or array.dtype.hasobject
    ]
    if found or (list(first) == list(again) and all(_same(first[name], again[name]) for name in first)):
        return found
    return ["packing the weights twice gives two results"]


def _same(first: Array, second: Array) -> bool:
    return (first.dtype, first.shape) == (second.dtype, second.shape) and first.tobytes() == second.tobytes()


def _run_problems(trial: KernelTrial, tolerance: float) -> list[str]:
    feeds = trial.feeds()
    one, two = (_bound(trial, feeds, num_threads) for num_threads in (1, 2))
    before = {name: array.contents() for name, array in one.inputs.items()}
    first = one.results()
    found = _memory_problems(one, before)
    if found:
        # The memory is no longer what the other runs would need.
        return found
    for what, other in (("a second time", one.results()), ("with 2 threads", two.results())):
        differing = [name for name in first if first[name].tobytes() != other[name].tobytes()]
        found += [f"{name} has other bits when it is run {what}" for name in differing]
    expected = run_reference(trial.network, feeds)
    for name, value in expected.items():
        found += number_problems(name, first[name], value, tolerance)
    return found


def _bound(trial: KernelTrial, feeds: Mapping[str, Array], num_threads: int) -> _Run:
    """The kernel, bound to fresh memory in the trial's arrangements."""
    written = {tensor.name for tensor in trial.group.outputs}
    guarded = {
        name: guarded_array(spec.shape, spec.dtype.numpy, trial.arrangements[name])
        for name, spec in trial.activations.items()
    }
    inputs = {name: array for name, array in guarded.items() if name not in written}
    for name, array in inputs.items():
        array.fill(feeds[name])
    size = int(trial.kernel.workspace_bytes(trial.group, trial.specs, num_threads))
    workspace = guarded_array((size,), np.dtype(np.uint8))
    known = {
        tensor.name: value for tensor in trial.group.inputs if (value := trial.specs[tensor.name].value) is not None
    }
    arrays = {**known, **{name: one.array for name, one in guarded.items()}}
    weights = trial.kernel.pack(trial.group)
    packed = _packed_arrays(trial, written)
    kept = {name: one.array for name, one in packed.items()}
    binding = Binding(trial.group, trial.specs, arrays, weights, workspace.array, num_threads, packed=kept)
    step = trial.kernel.bind(binding)
    outputs = {name: array for name, array in guarded.items() if name in written}
    return _Run(trial, inputs, outputs, packed, workspace, _schedule([step], num_threads))


def _packed_arrays(trial: KernelTrial, written: Collection[str]) -> dict[str, GuardedArray]:
    """Memory for what the kernel wants in formats of its own."""
    sides = {name: trial.kernel.formats.get("output" if name in written else "input") for name in trial.activations}
    return {
        name: guarded_array(layout.array_shape(spec.shape, spec.dtype), spec.dtype.numpy)
        for name, spec in trial.activations.items()
        if (layout := sides[name]) is not None
    }


def _schedule(steps: Sequence[Any], num_threads: int) -> Any:
    create_schedule = registry.host().create_schedule
    if create_schedule is None:
        raise PluginError(
            "The host target must have a schedule to run kernels",
            where=registry.host().device,
            remedy="Set `create_schedule_at` in its Target record",
        )
    return create_schedule(steps, num_threads)


def _memory_problems(run: _Run, before: Mapping[str, bytes]) -> list[str]:
    """Whether anything was written but outputs and workspace."""
    return [
        *(f"it writes to its input {name}" for name, array in run.inputs.items() if array.contents() != before[name]),
        *(f"it writes beside its output {name}" for name, array in run.outputs.items() if not array.is_intact_outside),
        *_packed_problems(run),
        *([] if run.workspace.is_intact_outside else ["it writes beyond the workspace that it asked for"]),
    ]


def _packed_problems(run: _Run) -> Iterator[str]:
    """The same of arrays in the formats that the kernel declares."""
    for name, packed in run.packed.items():
        side = "input" if name in run.inputs else "output"
        layout = run.trial.kernel.formats[side]
        if not packed.is_intact_outside:
            yield f"it writes beside its {side} {name} in {layout.name}"
        if side == "input" and packed.array.tobytes() != layout.pack(run.inputs[name].array).tobytes():
            yield f"it writes to its input {name} in {layout.name}"
