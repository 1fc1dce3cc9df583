"""Peak memory of a process that loads a model and runs it ten times: `python -m measuring.peak_memory SIDE FILE ...`.

The peak is that of the process since its program began, where Linux tells it. `ru_maxrss` also counts the parent whose
copy the process was before, which is large here.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from measuring.bars import ONNXRUNTIME

RUNS = 10
DRYFIT = "dryfit"


def peak_mib(side: str, model: Path, input_name: str, shape: tuple[int, ...], threads: int = 1) -> float:
    """MiB that a process of its own needs.

    Args:
        side: `dryfit`, for an engine file, or `onnxruntime`, for a model.
        model: the file.
        input_name: of the model.
        shape: of the input.
        threads: how many run it.

    Raises:
        subprocess.CalledProcessError: the process fails.
    """
    command = [sys.executable, "-m", __name__, side, str(model), input_name, ",".join(map(str, shape)), str(threads)]
    folder = Path(__file__).parents[1]
    found = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return float(found.stdout)


def own_peak_mib() -> float:
    """MiB that this process has needed so far."""
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.exists() else []:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Load, run, and print MiB."""
    from measuring.runtimes import dryfit_run, onnxruntime_run

    side, model, input_name, shape, threads = sys.argv[1:]
    make = {DRYFIT: dryfit_run, ONNXRUNTIME: onnxruntime_run}[side]
    image = np.zeros([int(extent) for extent in shape.split(",")], np.float32)
    run = make(Path(model), input_name, image, int(threads))
    for _ in range(RUNS):
        run()
    print(own_peak_mib())


if __name__ == "__main__":
    main()
