"""Builds for a board: the config of a network as trtexec and TensorRT's Python API accept it, and back."""
