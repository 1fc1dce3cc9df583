"""What each layer kind means, in numpy, one file per family of kinds: the oracle for kernels and for constant folding.

    activation      activation, parametric_relu, normalization, lrn, softmax, ragged_softmax, vector_function
    assertion       assertion
    attention       attention, rotary_embedding, kv_cache_update
    control_flow    conditional, loop
    convolution     convolution, deconvolution, fully_connected, matrix_multiply, einsum, pooling
    elementwise     elementwise, unary, select, scale
    grid_sample     grid_sample
    indexing        gather, scatter, one_hot, non_zero, constant, fill, shape
    movement        concatenation, identity, padding, reverse_sequence, shuffle, slice, squeeze, unsqueeze
    plugin          plugin
    quantization    cast, quantize, dequantize, dynamic_quantize, quantized_operator
    reduction       reduce, cumulative, histogram, top_k, nms
    resize          resize

`registry` has the table from kind to function, `executor` runs a network by it, `body_program` the bodies of loops and
conditionals, `inference` evaluates shapes and `precision` says where a reference rounds.
"""
