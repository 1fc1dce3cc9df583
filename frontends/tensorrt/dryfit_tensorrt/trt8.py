"""A module that behaves as `tensorrt` 8.6, on dryfit. Everything is simulated; no GPU is used."""

from typing import Any

from dryfit_tensorrt.module import contents, missing


def __getattr__(name: str) -> Any:
    raise missing("8.6", name)


globals().update(contents("8.6"))
