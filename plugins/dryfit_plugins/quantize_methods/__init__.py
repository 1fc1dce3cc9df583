"""Quantize methods: the arithmetic of inference libraries as records, one file a library with its rules."""
