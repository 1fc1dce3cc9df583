"""Builds for the board: a network's config as TensorRT's trtexec and TensorRT's Python API take it, and back."""
