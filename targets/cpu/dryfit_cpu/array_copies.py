"""Copies of whole arrays between layouts, for whoever asks the host: what packs tensors into a device's formats."""

from __future__ import annotations

from dryfit.target.kernels import Array
from dryfit_cpu.kernels.copying import transposition_work
from dryfit_cpu.kernels.interleaving import interleaving_work
from dryfit_cpu.steps import NativeStep


def copy_array(source: Array, destination: Array) -> bool:
    """Copy an array, on the calling thread, where native code is quicker than numpy.

    Args:
        source: of any strides.
        destination: of the same shape and type, any strides.

    Returns:
        Whether it was copied.
    """
    work = transposition_work(source, destination, 1) or interleaving_work(source, destination, 1)
    if work is None:
        return False
    NativeStep("copy", [work], [source, destination]).run()
    return True
