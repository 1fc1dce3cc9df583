"""A module that behaves as `tensorrt` 11.1, on dryfit. Everything is simulated; no GPU is used."""

from typing import Any

from dryfit_tensorrt.module import contents, missing


def __getattr__(name: str) -> Any:
    raise missing("11.1", name)


globals().update(contents("11.1"))
