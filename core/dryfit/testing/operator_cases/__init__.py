"""Cases to try operators of quantize methods with: they seek ties, and are the same in every run."""
