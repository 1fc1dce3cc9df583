"""Choosing and compiling the host's kernels, and the timing cache."""
