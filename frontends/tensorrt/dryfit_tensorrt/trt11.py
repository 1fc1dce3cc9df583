"""A module that behaves as `tensorrt` 11.1, on dryfit. Everything is simulated; no GPU is used."""

from typing import Any

from dryfit_tensorrt.module import contents


def __getattr__(name: str) -> Any:
    text = f"module 'tensorrt' has no attribute {name!r} (TensorRT 11.1, simulated by dryfit)"
    raise AttributeError(text, name=name)


globals().update(contents("11.1"))
