"""What each layer kind means, in numpy, one file per family of kinds: the oracle for kernels and for constant folding.

    activation      activation, parametric_relu
    convolution     convolution, deconvolution, fully_connected
    elementwise     elementwise, unary, select, scale
    generators      constant, fill, shape
    grid_sample     grid_sample
    histogram       histogram
    indexing        gather, scatter, one_hot, non_zero
    matrix          matrix_multiply, einsum
    movement        concatenation, identity, padding, reverse_sequence, shuffle, slice, squeeze, unsqueeze
    normalization   normalization, lrn, softmax
    plugin          plugin
    pooling         pooling
    quantization    cast, quantize, dequantize, dynamic_quantize, quantized_operator
    ranking         top_k, nms
    reduction       reduce, cumulative
    resize          resize

`registry` has the table from kind to function, `executor` runs a network by it, `inference` evaluates shapes and
`precision` says where a reference rounds.
"""
