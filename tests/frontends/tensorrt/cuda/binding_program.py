"""A program of TensorRT 8's binding API and PyCUDA, in the form that detection models are deployed with."""

import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt

LOGGER = trt.Logger(trt.Logger.INFO)
trt.init_libnvinfer_plugins(LOGGER, "")


class HostDeviceMem:
    def __init__(self, host_mem, device_mem):
        self.host = host_mem
        self.device = device_mem


def build(path):
    with (
        trt.Builder(LOGGER) as builder,
        builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)) as network,
        trt.OnnxParser(network, LOGGER) as parser,
        builder.create_builder_config() as config,
    ):
        config.max_workspace_size = 1 << 28
        with open(path, "rb") as f:  # noqa: PTH123  as programs of that time do
            if not parser.parse(f.read()):
                raise SystemExit(1)
        profile = builder.create_optimization_profile()
        profile.set_shape("image", (1, 1, 8, 8), (1, 1, 8, 8), (4, 1, 8, 8))
        config.add_optimization_profile(profile)
        return builder.build_engine(network, config)


engine = build(sys.argv[1])
context = engine.create_execution_context()
context.set_binding_shape(0, (2, 1, 8, 8))
inputs, outputs, bindings, stream = [], [], [], cuda.Stream()
for binding in engine:
    i = engine.get_binding_index(binding)
    size = trt.volume(context.get_binding_shape(i))
    dtype = trt.nptype(engine.get_binding_dtype(binding))
    host = cuda.pagelocked_empty(size, dtype)
    device = cuda.mem_alloc(host.nbytes)
    bindings.append(int(device))
    (inputs if engine.binding_is_input(binding) else outputs).append(HostDeviceMem(host, device))
x = np.random.default_rng(0).random((2, 1, 8, 8), np.float32)
np.copyto(inputs[0].host, x.ravel())
[cuda.memcpy_htod_async(i.device, i.host, stream) for i in inputs]
context.execute_async_v2(bindings=bindings, stream_handle=stream.handle)
[cuda.memcpy_dtoh_async(o.host, o.device, stream) for o in outputs]
stream.synchronize()
np.savez(sys.argv[2], image=x, probabilities=outputs[0].host)
