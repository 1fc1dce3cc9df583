"""How long the first build takes on a machine that has compiled nothing yet, and a second process after it.

Usage: python benchmarks/start_up.py [--networks resnet50 ...] [--precisions fp32 int8] [--write]

Each network is built in a process of its own with an empty cache of kernels; another process then loads the engine and
runs it once. Both are timed from the start of the process, imports and all: the build to its end, the other one to its
result. The model is made beforehand. CPU time is what they take of a processor, whatever else runs there.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from measuring.machine import machine_text
from measuring.models import FORMS, NETWORKS, Model, is_there, model
from measuring.page import plain_table, table, write_section

BUILD_BAR_SECONDS, RESULT_BAR_SECONDS = 12.0, 0.5
"""Of processor time for the build: compiling takes all processors that there are."""
COLUMNS = (
    "network",
    "precision",
    "first build, cold",
    "its CPU time",
    "",
    "first result of a second process",
    "its CPU time",
    "",
)

BUILD = """
import sys
from pathlib import Path
from measuring.runtimes import build_engine
build_engine(*map(Path, sys.argv[1:]))
"""
RUN = """
import sys
import time
import numpy as np
from dryfit.engine.engine import Engine
engine = Engine.load(sys.argv[1])
name = engine.get_tensor_name(0)
image = np.zeros(engine.get_tensor_shape(name), np.float32)
engine.create_execution_context().run({name: image})
print(time.process_time(), flush=True)
if "numba" in sys.modules:
    sys.exit("the second process compiled kernels")
"""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=["resnet50"])
    parser.add_argument("--precisions", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--write", action="store_true", help="write the results to the page in docs")
    arguments = parser.parse_args()
    print(machine_text())
    rows = []
    for name in arguments.networks:
        if not is_there(name):
            print(f"{name} is left out: its model is not there")
            continue
        for precision in arguments.precisions:
            rows.append(row(model(name, precision, 1)))
            print(plain_table(COLUMNS, rows[-1:]).splitlines()[1], flush=True)
    print("\n" + plain_table(COLUMNS, rows))
    if arguments.write:
        write_section("start-up", f"Measured on {machine_text()}.\n\n" + table(COLUMNS, rows))


def row(chosen: Model) -> tuple[object, ...]:
    """One network's seconds, and whether they are within the bars."""
    build, result = start_up(chosen)
    return (
        chosen.name,
        chosen.precision.upper(),
        f"{build.seconds:.1f} s",
        f"{build.cpu_seconds:.1f} s",
        _verdict(build.cpu_seconds, BUILD_BAR_SECONDS),
        f"{result.seconds:.2f} s",
        f"{result.cpu_seconds:.2f} s",
        _verdict(result.seconds, RESULT_BAR_SECONDS),
    )


class Spent(NamedTuple):
    """What a process took: seconds on the clock, and of all its threads on a processor."""

    seconds: float
    cpu_seconds: float


def start_up(chosen: Model) -> tuple[Spent, Spent]:
    """What a first build on a cold cache took, and the quickest of three second processes to its first result.

    Raises:
        subprocess.CalledProcessError: a process fails, or the second one had to compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        engine = Path(folder) / "network.engine"
        environment = {**os.environ, "DRYFIT_CACHE_DIR": folder}
        build = _spent([BUILD, str(chosen.files[FORMS[chosen.precision][0]]), str(engine)], environment)
        return build, min(_until_result([RUN, str(engine)], environment) for _ in range(3))


def _spent(program: list[str], environment: dict[str, str]) -> Spent:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", *program], cwd=Path(__file__).parent, env=environment, check=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(time.perf_counter() - start, cpu)


def _until_result(program: list[str], environment: dict[str, str]) -> Spent:
    """What a process takes until it prints its processor time."""
    command = [sys.executable, "-c", *program]
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=Path(__file__).parent, env=environment, stdout=subprocess.PIPE) as process:  # noqa: S603
        cpu = process.stdout.readline() if process.stdout is not None else b""
        seconds = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Spent(seconds, float(cpu))


def _verdict(seconds: float, bar: float) -> str:
    return f"{'met' if seconds <= bar else 'MISSED'} (at most {bar:g} s)"


if __name__ == "__main__":
    main()
