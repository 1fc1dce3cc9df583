"""Scales, rounding, casts, quantized groups, histograms, and the calibrator protocol."""
