"""What the DLA computes in a way of its own; the host's kernels run the rest with the arithmetic that it declares."""

from __future__ import annotations

from dryfit.target.kernels import Kernel
from dryfit_dla.kernels.softmax import take_optimized_softmax

KERNELS: tuple[Kernel, ...] = (take_optimized_softmax,)
