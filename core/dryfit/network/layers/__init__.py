"""All layer kinds on one screen, one file per family of kinds.

    activation           activation, parametric_relu, scale
    assertion            assertion
    attention            attention, rotary_embedding, kv_cache_update
    control_flow         conditional, loop
    convolution          convolution, deconvolution, fully_connected
    elementwise          elementwise, unary, select
    generators           constant, fill, shape
    indexing             gather, scatter, one_hot, non_zero
    matrix               matrix_multiply, einsum
    movement             concatenation, identity, padding, reverse_sequence, squeeze, unsqueeze
    normalization        normalization, lrn, softmax, vector_function
    plugin               plugin
    quantization         quantize, dequantize, dynamic_quantize, cast
    quantized_operator   quantized_operator
    ragged_softmax       ragged_softmax
    ranking              top_k, nms, histogram
    reduction            reduce, cumulative
    resize               resize, grid_sample
    slice                slice, shuffle
    window_layer         pooling

`boundaries` has the layers around loops and conditionals that users write with `loops_and_conditionals`; a build
replaces them by the kinds of `control_flow`.

To add a kind, add one class to its family's file here, with a method that adds it to a network, and one function to the
family's file in `dryfit.reference`.
"""

from dryfit.network.layers import control_flow, quantized_operator  # noqa: F401  kinds that no method adds
from dryfit.network.layers.activation import AddActivation, AddScale
from dryfit.network.layers.assertion import AddAssertion
from dryfit.network.layers.attention import AddAttention
from dryfit.network.layers.convolution import AddConvolution
from dryfit.network.layers.elementwise import AddElementwise
from dryfit.network.layers.generators import AddGenerators
from dryfit.network.layers.indexing import AddIndexing
from dryfit.network.layers.loops_and_conditionals import AddControlFlow
from dryfit.network.layers.matrix import AddMatrix
from dryfit.network.layers.movement import AddMovement
from dryfit.network.layers.normalization import AddNormalization
from dryfit.network.layers.plugin import AddPlugin
from dryfit.network.layers.quantization import AddQuantization
from dryfit.network.layers.ragged_softmax import AddRaggedSoftmax
from dryfit.network.layers.ranking import AddHistogram, AddRanking
from dryfit.network.layers.reduction import AddReduction
from dryfit.network.layers.resize import AddGridSample, AddResize
from dryfit.network.layers.slice import AddShuffle, AddSlice
from dryfit.network.layers.window_layer import AddPooling


class LayerMethods(
    AddActivation,
    AddAssertion,
    AddAttention,
    AddControlFlow,
    AddConvolution,
    AddElementwise,
    AddGenerators,
    AddGridSample,
    AddHistogram,
    AddIndexing,
    AddMatrix,
    AddMovement,
    AddNormalization,
    AddPlugin,
    AddPooling,
    AddQuantization,
    AddRaggedSoftmax,
    AddRanking,
    AddReduction,
    AddResize,
    AddScale,
    AddShuffle,
    AddSlice,
):
    """All `add_*` methods, under TensorRT's names. `Network` inherits them."""
