"""Which layers and tensors a network loses accuracy by when they are quantized, and why."""
