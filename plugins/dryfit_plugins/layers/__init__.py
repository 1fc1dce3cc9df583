"""Layer plugins for ONNX operators that no layer kind covers."""
