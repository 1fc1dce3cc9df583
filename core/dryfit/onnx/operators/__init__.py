"""ONNX operators, one file per family: each function adds the layers of one node."""
