"""What the ACME NPU computes in a way of its own: sigmoid by a table, and ACME's layer. The host does the rest."""

from collections.abc import Callable

import numpy as np

import dryfit
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.target.kernels import Binding, kernel
from dryfit_npu.device import ACME_HWC

STEPS_A_UNIT = 64
TABLE = (1 / (1 + np.exp(-np.arange(-8 * STEPS_A_UNIT, 8 * STEPS_A_UNIT) / STEPS_A_UNIT))).astype(np.float16)
"""Sigmoid at 1,024 places from -8 to 8. ACME NPU manual, 5.3."""


@kernel(
    "dryfit_npu.sigmoid",
    kinds="activation",
    data_types="fp16",
    accepts=lambda group, specs: group.main.activation_type is ActivationType.SIGMOID,
    formats={"input": ACME_HWC, "output": ACME_HWC},
)
def sigmoid(binding: Binding) -> Callable[[], None]:
    """The nearest entry of the table."""
    (x,), (y,) = binding.inputs, binding.outputs

    def look_up() -> None:
        places = np.rint(np.nan_to_num(x.astype(np.float32)) * STEPS_A_UNIT).astype(np.int32) + len(TABLE) // 2
        y[...] = TABLE[np.clip(places, 0, len(TABLE) - 1)]

    return look_up


KERNELS = (sigmoid,)


@dryfit.layer_plugin("Swish", namespace="acme", formats=[[DataType.HALF] * 2, [DataType.FLOAT] * 2])
def swish(x: np.ndarray, *, beta: float = 1.0) -> np.ndarray:
    """`x / (1 + exp(-beta x))`, of the input's shape and type."""
    wide = x.astype(np.float32)
    return (wide / (1 + np.exp(-beta * wide))).astype(x.dtype)
