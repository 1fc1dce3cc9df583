"""The CUDA entry points that TensorRT programs use for buffers, on host memory: no GPU and no library of CUDA's."""
