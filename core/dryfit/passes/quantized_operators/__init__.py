"""From layers with quantization around them to quantized operators, where a quantize method is chosen."""
