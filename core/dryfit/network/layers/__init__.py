"""All layer kinds on one screen: one file each.

A new kind is one file here, one function in its family's file of `dryfit.reference`, one line below.
"""

from dryfit.network.layers.activation import AddActivation
from dryfit.network.layers.cast import AddCast
from dryfit.network.layers.concatenation import AddConcatenation
from dryfit.network.layers.constant import AddConstant
from dryfit.network.layers.convolution import AddConvolution
from dryfit.network.layers.cumulative import AddCumulative
from dryfit.network.layers.deconvolution import AddDeconvolution
from dryfit.network.layers.dequantize import AddDequantize
from dryfit.network.layers.dynamic_quantize import AddDynamicQuantize
from dryfit.network.layers.einsum import AddEinsum
from dryfit.network.layers.elementwise import AddElementwise
from dryfit.network.layers.fill import AddFill
from dryfit.network.layers.fully_connected import AddFullyConnected
from dryfit.network.layers.gather import AddGather
from dryfit.network.layers.grid_sample import AddGridSample
from dryfit.network.layers.histogram import AddHistogram
from dryfit.network.layers.identity import AddIdentity
from dryfit.network.layers.lrn import AddLrn
from dryfit.network.layers.matrix_multiply import AddMatrixMultiply
from dryfit.network.layers.nms import AddNms
from dryfit.network.layers.non_zero import AddNonZero
from dryfit.network.layers.normalization import AddNormalization
from dryfit.network.layers.one_hot import AddOneHot
from dryfit.network.layers.padding import AddPadding
from dryfit.network.layers.parametric_relu import AddParametricRelu
from dryfit.network.layers.plugin import AddPlugin
from dryfit.network.layers.pooling import AddPooling
from dryfit.network.layers.quantize import AddQuantize
from dryfit.network.layers.reduce import AddReduce
from dryfit.network.layers.resize import AddResize
from dryfit.network.layers.reverse_sequence import AddReverseSequence
from dryfit.network.layers.scale import AddScale
from dryfit.network.layers.scatter import AddScatter
from dryfit.network.layers.select import AddSelect
from dryfit.network.layers.shape import AddShape
from dryfit.network.layers.shuffle import AddShuffle
from dryfit.network.layers.slice import AddSlice
from dryfit.network.layers.softmax import AddSoftmax
from dryfit.network.layers.squeeze import AddSqueeze
from dryfit.network.layers.top_k import AddTopK
from dryfit.network.layers.unary import AddUnary
from dryfit.network.layers.unsqueeze import AddUnsqueeze


class LayerMethods(
    AddActivation,
    AddCast,
    AddConcatenation,
    AddConstant,
    AddConvolution,
    AddCumulative,
    AddDeconvolution,
    AddDequantize,
    AddDynamicQuantize,
    AddEinsum,
    AddElementwise,
    AddFill,
    AddFullyConnected,
    AddGather,
    AddGridSample,
    AddHistogram,
    AddIdentity,
    AddLrn,
    AddMatrixMultiply,
    AddNms,
    AddNonZero,
    AddNormalization,
    AddOneHot,
    AddPadding,
    AddParametricRelu,
    AddPlugin,
    AddPooling,
    AddQuantize,
    AddReduce,
    AddResize,
    AddReverseSequence,
    AddScale,
    AddScatter,
    AddSelect,
    AddShape,
    AddShuffle,
    AddSlice,
    AddSoftmax,
    AddSqueeze,
    AddTopK,
    AddUnary,
    AddUnsqueeze,
):
    """Every `add_*` method, by TensorRT's names. `Network` inherits them."""
