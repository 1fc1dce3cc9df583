"""What edits of ONNX models are made of, how they are applied, and how it is proved that they change no result."""
