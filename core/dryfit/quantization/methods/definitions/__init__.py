"""What quantize methods compute, in numpy: one file a family of operators. Kernels equal them bit for bit.

A definition takes an `OperatorCall` and the `MethodRule` that names it, and returns the output's codes (or, of
`dequantize`, real numbers).
"""
