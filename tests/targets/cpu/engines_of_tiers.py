"""Quantized engines in a folder, built by one process and run by others: with other tiers, or on another machine.

    DRYFIT_CPU_TIER=avx2 python -m tests.targets.cpu.engines_of_tiers build engines
    DRYFIT_CPU_TIER=generic python -m tests.targets.cpu.engines_of_tiers run engines

`build` writes an engine of each network, or of one that is named, called as the tier, and beside it what it computes.
`run` runs all that are in the folder and prints, for each, whether its results are the same bits; `both` builds and
runs. Convolutions of any window, depthwise ones,
residuals, pooling, and sums over the image are in them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from tests.integration.quantized_networks import mobilenetv2, resnet50

import dryfit
from dryfit_cpu.compiler.tier import current_tier

NETWORKS = {"resnet50": resnet50, "mobilenetv2": mobilenetv2}
EXTENT, SHARE = 32, 1 / 8


def result_of(engine: dryfit.Engine) -> np.ndarray:
    """What an engine computes of a picture that is always the same."""
    image = np.random.default_rng(1).standard_normal((1, 3, EXTENT, EXTENT)).astype(np.float32)
    (result,) = engine.create_execution_context(num_threads=1).run({"image": image}).values()
    return result


def build_engines(folder: Path, *names: str) -> None:
    """Build an engine of these networks for the CPU, of all without a name, and write it and its result."""
    for name in names or NETWORKS:
        config = dryfit.Builder().create_builder_config()
        config.default_device_type = dryfit.DeviceType.CPU
        config.builder_optimization_level = 0
        engine = dryfit.Builder().build_engine(NETWORKS[name](share=SHARE, extent=EXTENT), config)
        path = folder / f"{name}.{current_tier().name}.engine"
        engine.save(path)
        np.save(path.with_suffix(".npy"), result_of(engine))


def differing_engines(folder: Path) -> dict[str, int]:
    """For each engine of a folder how many results are other bits than those that were written beside it."""
    found = {}
    for path in sorted(folder.glob("*.engine")):
        expected, result = np.load(path.with_suffix(".npy")), result_of(dryfit.Engine.load(path))
        found[path.stem] = int((result.view(np.int32) != expected.view(np.int32)).sum())
    return found


if __name__ == "__main__":
    command, place, *chosen = sys.argv[1:]
    if command in {"build", "both"}:
        build_engines(Path(place), *chosen)
    if command in {"run", "both"}:
        for engine_name, differing in differing_engines(Path(place)).items():
            sys.stdout.write(f"{engine_name} on {current_tier().name}: {differing} results differ\n")
