"""Tactics: the ways in which a kernel can run a group, and which of them was the fastest on this processor.

Tactics differ in speed alone (loop order, blocking), never in a bit of the result. So an engine does not name them: the
processor that runs it decides, by what was measured there and is kept in the timing cache. A kernel lists its tactics
best first, by what it knows of the processor; that order holds where nothing was measured.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dryfit.attrs_classes import frozen
from dryfit.network.printing import parameter_texts
from dryfit.network.tensor import Tensor
from dryfit.target.binding import Specs, is_activation
from dryfit.target.cache_folder import cache_folder
from dryfit.target.group import LayerGroup

if TYPE_CHECKING:
    from dryfit.target.kernels import Kernel

LEAST_GAIN = 1.03
"""How much faster than the first tactic another one must be to take its place: less is noise."""

TIER_VARIABLE = "DRYFIT_CPU_TIER"
"""The environment variable that makes the CPU target's kernels use fewer instructions than the processor has."""


@frozen
class Tactics:
    """The tactics of a kernel for a group.

    Attributes:
        names: best first, by what the kernel knows; none if there is no choice.
        are_ranked: whether their order was found on processors like this one, so that a build need not measure.
    """

    names: Sequence[str] = ()
    are_ranked: bool = True

    def fastest(self, times: Mapping[str, float]) -> str:
        """Return the fastest of them; the first, unless it was measured and another is clearly faster."""
        first = self.names[0]
        if first not in times:
            return first
        best = min((name for name in self.names if name in times), key=lambda name: times[name])
        return best if times[first] >= LEAST_GAIN * times[best] else first


def timed_name(kernel: str, tactic: str) -> str:
    """Return how the timing cache names a kernel with a tactic: `cpu.convolution/panels`."""
    return f"{kernel}/{tactic}" if tactic else kernel


def chosen_tactic(kernel: Kernel, group: LayerGroup, specs: Specs) -> str:
    """Return the tactic that runs a group on this processor; empty for a kernel without a choice."""
    tactics = kernel.tactics(group, specs) if kernel.has_tactics else Tactics()
    if len(tactics.names) < 2:
        return ""
    kept = _kept_times(*_state_of(timing_file()))
    if not kept:
        return tactics.names[0]
    signature = group_signature(group, specs)
    found = {name: kept.get((signature, timed_name(kernel.name, name), kernel.version)) for name in tactics.names}
    return tactics.fastest({name: time for name, time in found.items() if time is not None})


def _state_of(path: Path) -> tuple[Path, int]:
    try:
        return path, path.stat().st_mtime_ns
    except OSError:
        return path, 0


@functools.lru_cache(maxsize=2)
def _kept_times(path: Path, changed: int) -> Mapping[tuple[str, str, int], float]:
    """The times of tactics in a timing cache; lines that are no measurement of one are passed over.

    Read for each engine, so that lines of whole kernels are not even parsed.
    """
    found: dict[tuple[str, str, int], float] = {}
    if not changed:
        return found
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return found
    for line in lines:
        if not _IS_TACTIC.search(line):
            continue
        try:
            entry = json.loads(line)
            found[entry["group"], entry["kernel"], entry["version"]] = float(entry["microseconds"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # a build that reads the file reports it
    return found


_IS_TACTIC = re.compile(r'"kernel": "[^"/]+/')


# The processor and its file -------------------------------------------------------------------------------------------


@functools.cache
def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def processor_name() -> str:
    """Return the processor's name, with the instruction set tier if requested."""
    tier = os.environ.get(TIER_VARIABLE)
    return f"{_model()}, tier {tier}" if tier else _model()


def timing_file() -> Path:
    """Return the path of the timing cache that builds share: one per processor, in the user's cache folder."""
    return _timing_file(cache_folder(), processor_name())


@functools.lru_cache(maxsize=8)
def _timing_file(folder: Path, name: str) -> Path:
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
    return folder / "timing" / f"{words}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.jsonl"


# What was measured ----------------------------------------------------------------------------------------------------


def group_signature(group: LayerGroup, specs: Specs) -> str:
    """Kinds and parameters of the layers, how they are connected, types and shapes; no names, and no weights.

    Tensors are numbered: the group's inputs, then each layer's outputs. It is the same for groups that take the same
    time: `convolution(%0; kernel_size_nd=(3, 3)) + activation(%1) FLOAT[1, 3, 8, 8] -> FLOAT[1, 8, 6, 6]`.
    """
    made = [tensor for layer in group.layers for tensor in layer.outputs]
    numbers = {tensor.name: f"%{number}" for number, tensor in enumerate([*group.inputs, *made])}
    layers = []
    for layer in group.layers:
        inputs = ", ".join("-" if tensor is None else numbers[tensor.name] for tensor in layer.inputs)
        inside = "; ".join(part for part in (inputs, ", ".join(parameter_texts(layer, printed_elements=0))) if part)
        layers.append(f"{layer.kind}({inside})")
    inputs = ", ".join(_type(tensor, specs) for tensor in group.inputs)
    outputs = ", ".join(_type(tensor, specs) for tensor in group.outputs)
    return f"{' + '.join(layers)} {inputs} -> {outputs}"


def _type(tensor: Tensor, specs: Specs) -> str:
    spec = specs[tensor.name]
    text = f"{spec.dtype.name}[{', '.join(map(str, spec.shape))}]"
    return text if is_activation(tensor, specs) else f"constant {text}"
