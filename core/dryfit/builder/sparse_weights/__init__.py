"""2:4 sparsity of weights: finding it, and making it."""
