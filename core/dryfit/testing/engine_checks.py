"""Checks of engines for a target: small random networks are built, saved, loaded and run, reproducibly.

The oracle is `dryfit.reference`, which runs a network layer by layer in numpy and shares no code with kernels.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.plan import Plan
from dryfit.errors import DryfitError, PlacementError
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.reference.executor import run_reference
from dryfit.target.target import Target
from dryfit.testing.own_process import about_to_run
from dryfit.testing.trial_networks import Trial, make_trial, mixed_trial, trial_problems

Array = np.ndarray[Any, Any]


def engine_problems(target: Target, precision: DataType, seed: int, tolerance: float, folder: Path) -> list[str]:
    """Build a random network twice, save, load and run it with 1 and 2 threads, and compare with the reference.

    Args:
        target: an installed target.
        precision: one of `TRIAL_PRECISIONS`.
        seed: seed of the network.
        tolerance: maximum error of an output, as a fraction of its largest magnitude.
        folder: folder for the engine file.
    """

    def look(trial: Trial) -> list[str]:
        again, path = make_trial(target, precision, seed), folder / f"trial-{precision.name}-{seed}.engine"
        return built_problems(target, trial, again, tolerance, path)

    return trial_problems(target, precision, seed, look)


def built_problems(target: Target, trial: Trial, again: Trial, tolerance: float, path: Path) -> list[str]:
    """Build a network twice, save, load and run it with 1 and 2 threads, and compare with the reference.

    Args:
        target: an installed target.
        trial: network of layers that it supports.
        again: the same, made a second time.
        tolerance: maximum error of an output, as a fraction of its largest magnitude; 0 for equal numbers.
        path: of the engine file.
    """
    engine = Builder().build_engine(trial.network, trial.config)
    found = []
    if not any(layer.device == target.device for layer in engine.plan.layers):
        found.append(f"no layer is on {target.device}, though it supports them all: they run on the fallback device")
    engine.save(path)
    loaded = Engine.load(path)
    if path.read_bytes() != Builder().build_serialized_network(again.network, again.config):
        found.append("building it twice gives two different engine files")
    if loaded.serialize() != path.read_bytes():
        found.append("the loaded engine is saved as another file")
    about_to_run(f"{trial.network.name}, with the kernels {_kernels(engine.plan, target.device)}")
    results = [one.create_execution_context(n).run(trial.feeds) for one, n in ((engine, 1), (loaded, 1), (loaded, 2))]
    names = ("as built, 1 thread", "loaded, 1 thread", "loaded, 2 threads")
    for name, result in zip(names[1:], results[1:], strict=True):
        differing = [key for key in results[0] if results[0][key].tobytes() != result[key].tobytes()]
        if differing:
            found.append(f"{', '.join(differing)}: the bits differ between {names[0]!r} and {name!r}")
    return found + _reference_problems(trial, results[0], tolerance)


def _kernels(plan: Plan, device: str) -> str:
    """The kernels that run the layers of a device."""
    return ", ".join(sorted({operation.kernel for operation in plan.operations if operation.device == device}))


def _reference_problems(trial: Trial, results: dict[str, Array], tolerance: float) -> list[str]:
    expected = run_reference(trial.network, trial.feeds)
    return [
        problem for key, value in expected.items() for problem in number_problems(key, results[key], value, tolerance)
    ]


def whole_problems(target: Target, precision: DataType, seed: int) -> list[str]:
    """Build a network of supported layers without fallback, and check that all of it is on the device."""

    def look(trial: Trial) -> list[str]:
        return stray_problems(target, Builder().build_plan(trial.network, trial.config))

    return trial_problems(target, precision, seed, look, fallback=False, said=", without fallback")


def stray_problems(target: Target, plan: Plan) -> list[str]:
    """Return the layers of a plan that are not on the device."""
    # Segment -1 is what is known before the run: the host reckons it for every device.
    strays = [layer for layer in plan.layers if layer.segment >= 0 and layer.device != target.device]
    return [f"layer {layer.layer!r} is on {layer.device}: {layer.cause}" for layer in strays]


def fallback_problems(target: Target, precision: DataType, tolerance: float) -> list[str] | None:
    """Build a network with an unsupported layer, without and with fallback; None if there is none."""
    alone, beside = (mixed_trial(target, precision, fallback=fallback) for fallback in (False, True))
    if alone is None or beside is None:
        return None
    (trial, refused, verdict), found = alone, []
    try:
        Builder().build_plan(trial.network, trial.config)
        found.append(f"it builds without fallback, though {verdict}")
    except PlacementError as error:
        found += [
            f"the error must give the reason for {refused.name!r}, {violation.message!r}: {error}"
            for violation in verdict.violations
            if violation.message not in str(error)
        ]
    except DryfitError as error:
        found.append(f"without fallback the error is not a PlacementError: {type(error).__name__}: {error}")
    trial, refused, _ = beside
    engine = Builder().build_engine(trial.network, trial.config)
    about_to_run(f"{trial.network.name}, with the kernels {_kernels(engine.plan, target.device)}")
    places = {layer.layer: layer.device for layer in engine.plan.layers}
    if places[refused.name] == target.device or target.device not in places.values():
        found.append(f"with fallback the layers are on {places}, and {refused.name!r} is the one that is refused")
    results = engine.create_execution_context(1).run(trial.feeds)
    return [f"{trial.network.name}: {one}" for one in [*found, *_reference_problems(trial, results, tolerance)]]


def number_problems(name: str, actual: Array, expected: Array, tolerance: float) -> list[str]:
    """Return deviations of an output from the reference: shape, type, or an error beyond the tolerance."""
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return [f"{name} is {actual.dtype} {actual.shape}, not {expected.dtype} {expected.shape}"]
    largest = float(np.max(np.abs(expected.astype(np.float64)), initial=0.0))
    error = float(np.max(np.abs(actual.astype(np.float64) - expected.astype(np.float64)), initial=0.0))
    if error <= tolerance * largest:
        return []
    return [f"{name} differs by {error:.3g} from the reference, whose largest magnitude is {largest:.3g}"]


_HASH_SEEDS = ("1", "2")
_MARK = "DIGESTS "


def process_problems(target: Target, precision: DataType, networks: int) -> list[str]:
    """Build random networks here and in a fresh interpreter, and compare the engine files.

    Args:
        target: a target installed as a package, so that the other process finds it.
        precision: one of `TRIAL_PRECISIONS`.
        networks: number of networks.
    """
    arguments = (target.device, precision.name, networks)
    program = f"from dryfit.testing import engine_checks; engine_checks.print_digests{arguments!r}"
    path = os.pathsep.join(filter(None, sys.path))
    here = os.environ.get("PYTHONHASHSEED")
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONHASHSEED": next(seed for seed in _HASH_SEEDS if seed != here),
    }
    done = subprocess.run(  # noqa: S603  this interpreter, and a device that this process has loaded
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        return [f"{precision.text}: another process cannot build for {target.device}: {lines[-1]}"]
    there = json.loads(done.stdout.rpartition(_MARK)[2])
    return [
        f"network {seed}, {precision.text}: another process builds another engine file"
        for seed, (mine, other) in enumerate(zip(engine_digests(*arguments), there, strict=True))
        if mine != other
    ]


def engine_digests(device: str, precision: str, networks: int) -> list[str]:
    """Return the SHA-256 of the engine file of each trial network; "" for a network without layers."""
    target, found = registry.target(device), []
    for seed in range(networks):
        trial = make_trial(target, DataType[precision], seed)
        built = Builder().build_serialized_network(trial.network, trial.config) if trial.kinds else b""
        found.append(hashlib.sha256(built).hexdigest() if built else "")
    return found


def print_digests(device: str, precision: str, networks: int) -> None:
    """Print the digests as one line, after any earlier output."""
    sys.stdout.write(f"\n{_MARK}{json.dumps(engine_digests(device, precision, networks))}\n")
