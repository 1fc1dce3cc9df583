"""ONNX models in: one file per family of operators."""
