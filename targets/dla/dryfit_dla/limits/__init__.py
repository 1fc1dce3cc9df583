"""Limits of the DLA as documented: one entry per rule, one file per layer kind.

Sources: the chapter "Working with DLA" of TensorRT's developer guide (version 10 unless another is named), TensorRT's
headers, and the operator table of NVIDIA's Deep-Learning-Accelerator-SW repository. Rules marked `inferred` follow from
builder logs, or from our reading of an ambiguous sentence.
"""

from __future__ import annotations

from dryfit.target.limits import LimitTable
from dryfit_dla.limits.activation import ACTIVATION, PARAMETRIC_RELU, UNARY
from dryfit_dla.limits.borders import BORDERS
from dryfit_dla.limits.convolution import CONVOLUTION, FULLY_CONNECTED
from dryfit_dla.limits.data_movement import CONCATENATION, SHUFFLE, SLICE
from dryfit_dla.limits.deconvolution import DECONVOLUTION
from dryfit_dla.limits.documents import LAYERS, RUNNING
from dryfit_dla.limits.elementwise import CAST, ELEMENTWISE
from dryfit_dla.limits.every_layer import EVERY_LAYER, SUPPORTED, UNSUPPORTED
from dryfit_dla.limits.matrix_multiply import MATRIX_MULTIPLY
from dryfit_dla.limits.normalization import LRN, SCALE, SOFTMAX
from dryfit_dla.limits.pooling import POOLING, REDUCE
from dryfit_dla.limits.resize import RESIZE

LIMITS = LimitTable(
    device="DLA",
    rules=[
        *EVERY_LAYER,
        *BORDERS,
        *CONVOLUTION,
        *FULLY_CONNECTED,
        *MATRIX_MULTIPLY,
        *DECONVOLUTION,
        *POOLING,
        *ACTIVATION,
        *PARAMETRIC_RELU,
        *UNARY,
        *LRN,
        *ELEMENTWISE,
        *CAST,
        *CONCATENATION,
        *SCALE,
        *RESIZE,
        *REDUCE,
        *SHUFFLE,
        *SLICE,
        *SOFTMAX,
    ],
    supported_kinds=SUPPORTED,
    unsupported=UNSUPPORTED,
    source=LAYERS,
    precisions_source=RUNNING,
)
