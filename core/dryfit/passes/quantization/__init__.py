"""Passes over the quantize and dequantize layers of explicitly quantized networks. Each keeps the arithmetic."""
