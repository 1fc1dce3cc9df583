"""Quantize methods: the arithmetic of inference libraries as records, one file a method; rules stand in `rules`."""
