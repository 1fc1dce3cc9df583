"""Quantize methods: how a library or a device computes an operator on quantized tensors, to the last code."""
