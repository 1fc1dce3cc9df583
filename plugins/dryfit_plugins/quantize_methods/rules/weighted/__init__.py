"""Rules of convolution, deconvolution, inner product, and of codes to codes."""
