"""Runs forgeries between guard pages, one after the other, and writes what came of each; may end by a signal.

Usage: python -m tests.integration.forgeries.guarded_run FOLDER FIRST END [beside | far | wrong]

The last says what every kernel does beyond its work, so that it can be seen whether that is found: write a byte behind
its output, write one a tebibyte behind, or give other results.
"""

from __future__ import annotations

import collections
import ctypes
import json
import logging
import re
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from tests.guarded_engines import guarded_engines
from tests.integration.forgeries.forger import Forger, Forgery

from dryfit.engine import engine_file
from dryfit.engine.engine import Engine
from dryfit.engine.plan import Plan
from dryfit.errors import DryfitError, EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.reference.executor import run_reference
from dryfit.target.kernels import Binding, CallableStep, Kernel, Step
from dryfit.testing.guarded_memory import GuardedSide

Array = np.ndarray[Any, Any]

REFUSED, RIGHT, RAN = "refused", "right", "ran"
"""What may come of a forgery: the last where nothing says what would be right."""
_SECONDS, _MEMORY = 60, 6 << 30
_LARGEST_INPUT = 1 << 20
_MOST_ADDED = 8
_WANTED = re.compile(r"weights '(\w+)'")
_SHAPE = re.compile(r"(\w+) \(([\d, ]*)\)")
_TOLERANCE = {DataType.FLOAT: 1e-3, DataType.HALF: 2e-2, DataType.BF16: 1e-1}
_CODES = 0.15
"""Of the largest magnitude, where something is quantized: a code more or less goes on through later layers."""


def main(folder: Path, first: int, end: int) -> None:
    """Run the forgeries of these numbers."""
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    forger = Forger({path.stem: path.read_bytes() for path in sorted(folder.glob("*.forged"))})
    for number in range(first, end):
        forgery = forger.forge(number)
        print(json.dumps(["begin", number, forgery.recipe]), flush=True)  # noqa: T201
        signal.alarm(_SECONDS)
        outcome = _outcome(forgery, number)
        signal.alarm(0)
        print(json.dumps(["end", number, outcome]), flush=True)  # noqa: T201


def _outcome(forgery: Forgery, number: int) -> str:
    """What comes of a forgery; where the kernel tells which packed weights it lacks, it is given them."""
    with guarded_engines(GuardedSide.START if number % 4 == 3 else GuardedSide.END) as guards:
        try:
            outcome = _with_weights(forgery, number)
        except DryfitError as error:
            outcome = f"{REFUSED} {type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001  that is what is looked for
            places = traceback.extract_tb(error.__traceback__)[-3:]
            where = " < ".join(f"{Path(place.filename).name}:{place.lineno}" for place in reversed(places))
            outcome = f"FAULT {type(error).__name__}: {error} at {where}"
        problems = guards.problems()
    return f"OUTSIDE {problems[0]}" if problems else outcome[:400]


def _with_weights(forgery: Forgery, number: int) -> str:
    plan, is_consistent = forgery.plan, forgery.is_consistent
    for _ in range(_MOST_ADDED):
        try:
            return _run(plan, forgery.reference if is_consistent else None, number)
        except EngineFileError as error:
            given = _given(plan, error)
            if given is None:
                raise
            plan, is_consistent = given, False
    return f"{REFUSED}: no packed weights will do"


def _given(plan: Plan, error: EngineFileError) -> Plan | None:
    """The plan with the packed weights that a kernel wants; None where the error is about something else."""
    name, shape = _WANTED.search(str(error.where)), _SHAPE.fullmatch(str(error.allowed))
    if name is None or shape is None:
        return None
    extents = tuple(int(extent) for extent in shape[2].replace(" ", "").split(",") if extent)
    if np.prod(extents, dtype=float) > _LARGEST_INPUT:
        return None
    array = np.ones(extents, np.dtype(shape[1]))
    operations = [
        attrs.evolve(one, weights={**one.weights, name[1]: array}) if f"{one.name!r}," in str(error.where) else one
        for one in plan.operations
    ]
    return attrs.evolve(plan, operations=operations)


def _run(plan: Plan, reference: Network | None, number: int) -> str:
    engine = Engine.load(engine_file.serialize(plan))
    context = engine.create_execution_context(1 + number % 2)
    rng = np.random.default_rng(number)
    feeds = _feeds(engine.plan.network, rng)
    if feeds is None:
        return f"{REFUSED}: the inputs are too large to be tried"
    outputs = context.run(feeds)
    expected = _expected(reference, feeds) if reference is not None else None
    if expected is None:
        return RAN
    wrong = [name for name, array in outputs.items() if not _is_close(array, expected[name], reference)]
    return f"WRONG {wrong[0]}" if wrong else RIGHT


def _feeds(network: Network, rng: np.random.Generator) -> dict[str, Array] | None:
    feeds = {}
    for tensor in network.inputs:
        shape = [extent if extent >= 0 else 2 for extent in tensor.shape]
        if np.prod(shape, dtype=float) > _LARGEST_INPUT:
            return None
        is_real = tensor.dtype.is_floating_point
        values = rng.standard_normal(shape) if is_real else rng.integers(0, 2, shape)
        feeds[tensor.name] = np.asarray(values, np.float32).astype(tensor.dtype.numpy)
    return feeds


def _expected(network: Network, feeds: dict[str, Array]) -> dict[str, Array] | None:
    """What the references compute; None where they refuse it."""
    try:
        with np.errstate(all="ignore"):
            return run_reference(network, feeds)
    except Exception:  # noqa: BLE001  only what is refused by all of dryfit is nobody's fault
        return None


def _is_close(actual: Array, expected: Array, network: Network | None) -> bool:
    """Whether numbers are those of the references, as far as they are numbers and not indices or random."""
    if network is None or not DataType.from_numpy(actual.dtype).is_floating_point:
        return actual.shape == expected.shape
    kinds = collections.Counter(layer.kind for layer in network.layers)
    types = {tensor.dtype for layer in network.layers for tensor in layer.outputs}
    if kinds["fill"] or kinds["top_k"] or kinds["cast"] or kinds["dynamic_quantize"]:
        return actual.shape == expected.shape
    tolerance = max(_TOLERANCE.get(dtype, 0.0) for dtype in types | {DataType.FLOAT})
    if kinds["quantize"] or kinds["dequantize"] or kinds["quantized_operator"]:
        tolerance = _CODES
    if actual.shape != expected.shape:
        return False
    wide, truth = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(truth)
    if not finite.all() or not truth.size:
        return True
    largest = max(np.abs(truth).max(), 1e-3)
    return bool((np.abs(wide - truth) <= tolerance * largest).all())


def _spoil_kernels(how: str) -> None:
    bind = Kernel.bind

    def spoilt(kernel: Kernel, binding: Binding) -> Step:
        step, output = bind(kernel, binding), binding.outputs[0]

        def run() -> None:
            step.run()
            if how == "wrong":
                output[...] = 7
            else:
                ctypes.memset(output.ctypes.data + output.nbytes + (0 if how == "beside" else 1 << 40), 0, 1)

        return CallableStep(step.name, run)

    Kernel.bind = spoilt  # type: ignore[method-assign]


if __name__ == "__main__":
    if sys.argv[4:]:
        _spoil_kernels(sys.argv[4])
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
