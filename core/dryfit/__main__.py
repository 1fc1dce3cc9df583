"""The command `dryfit` as a process of its own, also as `python -m dryfit`."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Set up the process, and run the command; exits as `dryfit.cli.main.main` does.

    Args:
        arguments: None: those of the process.
    """
    # Layers and tensors refer to each other and live as long as the command: looking for garbage among them after every
    # 700 new objects, as Python does, takes a fifth of the time of large networks and finds nothing. A million objects
    # take about 100 MB. At the end they are not taken apart one by one either.
    gc.set_threshold(1_000_000, 2, 2)
    atexit.register(gc.freeze)
    from dryfit.cli.main import main as command  # 300 modules, which are no garbage either

    command(arguments)


if __name__ == "__main__":
    main()
