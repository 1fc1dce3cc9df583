"""A module that behaves as `tensorrt` 10.16, on dryfit. Everything is simulated; no GPU is used."""

from typing import Any

from dryfit_tensorrt.module import contents


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'tensorrt' has no attribute {name!r} (TensorRT 10.16, simulated by dryfit)", name=name
    )


globals().update(contents("10.16"))
