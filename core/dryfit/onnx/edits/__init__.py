"""Edits of ONNX models, one a file; each is found by being here."""
