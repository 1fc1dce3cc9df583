"""`cuda.bindings.nvrtc`, once `cuda.nvrtc`: the compiler of kernels, which is refused; its result codes exist."""

from __future__ import annotations

import enum

from dryfit_tensorrt.cuda.results import answering, refusing


class nvrtcResult(enum.IntEnum):
    """Result codes. Source: NVRTC's reference, CUDA 12.9."""

    NVRTC_SUCCESS = 0
    NVRTC_ERROR_OUT_OF_MEMORY = 1
    NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2
    NVRTC_ERROR_INVALID_INPUT = 3
    NVRTC_ERROR_INVALID_PROGRAM = 4
    NVRTC_ERROR_INVALID_OPTION = 5
    NVRTC_ERROR_COMPILATION = 6
    NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7
    NVRTC_ERROR_INTERNAL_ERROR = 11


@answering(nvrtcResult, 1)
def nvrtcGetErrorString(result: int) -> bytes:
    """Return the name of a result."""
    return nvrtcResult(int(result)).name.encode()


@answering(nvrtcResult, 2)
def nvrtcVersion() -> tuple[int, int]:
    """Return the version of CUDA whose codes these are."""
    return 12, 9


__getattr__ = refusing("NVRTC", ("nvrtc",))
