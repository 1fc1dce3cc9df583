"""`trtexec` inside `dryfit tensorrt env`: `dryfit exec` for the TensorRT version and the board of the environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dryfit.__main__ import main
from dryfit_tensorrt.settings import Settings


def exec_arguments(settings: Settings, options: Sequence[str]) -> list[str]:
    """Return the arguments of `dryfit` that execute a trtexec command line with these settings."""
    named = (("--api", settings.api.name), ("--platform", settings.platform), ("--software", settings.software))
    return ["exec", *(word for name, value in named if value for word in (name, value)), "--", *options]


if __name__ == "__main__":
    main(exec_arguments(Settings.from_environment(), sys.argv[1:]))
