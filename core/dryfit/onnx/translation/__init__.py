"""Quantization in the other form: implicit scales as a Q/DQ model, a Q/DQ model as scales and layer precisions."""
