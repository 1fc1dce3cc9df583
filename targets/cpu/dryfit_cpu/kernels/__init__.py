"""The host's kernels, one line each. Importing this does not load numba."""

from __future__ import annotations

from dryfit.target.kernels import Kernel
from dryfit_cpu.kernels import (
    convolution,
    deconvolution,
    depthwise,
    fully_connected,
    matrix_multiply,
    plugin,
    pointwise,
    pooling,
    reference,
    resize,
    softmax,
)

KERNELS: tuple[Kernel, ...] = (
    convolution.convolve,
    depthwise.convolve_channels,
    deconvolution.deconvolve,
    fully_connected.fully_connect,
    matrix_multiply.multiply,
    pooling.pool,
    pooling.pool_images,
    softmax.take_softmax,
    resize.resize_image,
    pointwise.map_elements,
    pointwise.concatenate,
    plugin.run_plugin,
    reference.evaluate_layers,
)
