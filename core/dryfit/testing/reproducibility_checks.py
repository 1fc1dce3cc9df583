"""Whether another process, with another order of hashing, builds the same engines."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.target.target import Target
from dryfit.testing.trial_networks import make_trial

_HASH_SEEDS = ("1", "2")
_MARK = "DIGESTS "


def process_problems(target: Target, precision: DataType, networks: int) -> list[str]:
    """Build random networks here and in a fresh interpreter, and compare the engine files.

    Args:
        target: installed as a package, so that the other process finds it.
        precision: one of `TRIAL_PRECISIONS`.
        networks: how many.
    """
    arguments = (target.device, precision.name, networks)
    program = f"from dryfit.testing import reproducibility_checks as r; r.print_digests{arguments!r}"
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
        return [f"{precision.name}: another process cannot build for {target.device}: {lines[-1]}"]
    there = json.loads(done.stdout.rpartition(_MARK)[2])
    return [
        f"network {seed}, {precision.name}: another process builds another engine file"
        for seed, (mine, other) in enumerate(zip(engine_digests(*arguments), there, strict=True))
        if mine != other
    ]


def engine_digests(device: str, precision: str, networks: int) -> list[str]:
    """SHA-256 of the engine file of each trial network; "" for a network without layers."""
    target, found = registry.target(device), []
    for seed in range(networks):
        trial = make_trial(target, DataType[precision], seed)
        built = Builder().build_serialized_network(trial.network, trial.config) if trial.kinds else b""
        found.append(hashlib.sha256(built).hexdigest() if built else "")
    return found


def print_digests(device: str, precision: str, networks: int) -> None:
    """Write the digests as one line, behind whatever was written before."""
    sys.stdout.write(f"\n{_MARK}{json.dumps(engine_digests(device, precision, networks))}\n")
