"""Edits of ONNX models, by family; each is found by being here."""
