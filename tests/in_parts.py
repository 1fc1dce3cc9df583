"""Runs all tests in parts, several at a time, each in a process of its own: `python tests/in_parts.py JOBS OPTION...`.

A process collects its own part only, and hands nothing over to another one. Each worker of pytest-xdist collects all
tests, and took 2.5 ms to report one, measured on an AMD EPYC (Zen 3): as long as a tenth of the tests take themselves.
A smaller process is forked sooner, too.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PARTS = (
    ("tests/integration",),
    ("tests/core/cli",),
    ("tests/repository", "tests/benchmarks", "tests/golden"),
    ("tests/conformance",),
    ("tests/targets",),
    ("tests",),
    ("tests/targets/cpu/kernels",),
    ("tests/core/answers",),
    ("tests/frontends",),
    ("tests/core/builder", "tests/core/board"),
    ("tests/core/testing", "tests/core/calibration"),
)
"""Folders that run in one process, without those that run in another one. What takes long comes first."""


def left_out(part: tuple[str, ...]) -> list[str]:
    """The folders inside those of a part that run in another one."""
    others = [folder for other in PARTS if other is not part for folder in other]
    return [one for one in others if one.startswith(tuple(f"{folder}/" for folder in part))]


def run(part: tuple[str, ...], options: list[str]) -> tuple[int, str]:
    """Run a part; returns the exit code, and what pytest prints."""
    ignored = [f"--ignore={one}" for one in left_out(part)]
    command = [sys.executable, "-m", "pytest", "--quiet", *options, *ignored, *part]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return ended.returncode, f"==== {' '.join(part)}\n{ended.stdout}\n"


def main(jobs: str, *options: str) -> int:
    """Run all parts and print what each printed, and how many tests passed, failed and were skipped in all."""
    failed, counts = 0, Counter[str]()
    with ThreadPoolExecutor(int(jobs)) as pool:
        for code, text in pool.map(lambda part: run(part, list(options)), PARTS):
            sys.stdout.write(text)
            sys.stdout.flush()
            failed += code != 0
            closing = text.rstrip().rpartition("\n")[2]
            counts.update(
                {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", closing.partition(" in ")[0])}
            )
    sys.stdout.write(", ".join(f"{count} {what}" for what, count in counts.items()) + " in all parts\n")
    return min(failed, 1)


if __name__ == "__main__":
    if not Path("tests").is_dir():
        sys.exit("Run it in the root of the repository")
    sys.exit(main(*sys.argv[1:]))
