"""What each layer kind means, in numpy, one file per kind: the oracle for kernels and for constant folding."""
