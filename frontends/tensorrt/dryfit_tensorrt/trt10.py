"""A module that behaves as `tensorrt` 10.16, on dryfit. Everything is simulated; no GPU is used."""

from typing import Any

from dryfit_tensorrt.module import contents, missing


def __getattr__(name: str) -> Any:
    raise missing("10.16", name)


globals().update(contents("10.16"))
