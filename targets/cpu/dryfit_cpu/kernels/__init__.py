"""The host's kernels, one line each. Importing this does not load numba."""

from __future__ import annotations

from dryfit.target.kernels import Kernel
from dryfit_cpu.kernels import (
    convolution,
    deconvolution,
    depthwise,
    fully_connected,
    matrix_multiply,
    pointwise,
    pooling,
    reference,
    resize,
    softmax,
)

KERNELS: tuple[Kernel, ...] = (
    convolution.KERNEL,
    depthwise.KERNEL,
    deconvolution.KERNEL,
    fully_connected.KERNEL,
    matrix_multiply.KERNEL,
    *pooling.KERNELS,
    softmax.KERNEL,
    resize.KERNEL,
    pointwise.KERNEL,
    pointwise.CONCATENATION,
    reference.KERNEL,
)
