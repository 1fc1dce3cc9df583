"""Small loadables, the engines that they come from, and cores that have them loaded."""

import functools

import numpy as np
from tests.core.builder.networks import activation, add, convolution, dla_config, named

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, DeviceType, EngineCapability
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ScaleMode
from dryfit.network.network import Network
from dryfit_dla.runtime import Task

SHAPE = (1, 16, 2, 3)


def config(platform="orin", software="10.3", capability=EngineCapability.DLA_STANDALONE):
    asked = BuilderConfig()
    asked.default_device_type = DeviceType.DLA
    asked.engine_capability = capability
    asked.set_platform("DLA", platform)
    asked.set_software("DLA", software)
    for flag in (BuilderFlag.FP16, BuilderFlag.DIRECT_IO):
        asked.set_flag(flag)
    return asked


def with_formats(network, read, written):
    for tensors, formats in ((network.inputs, read), (network.outputs, written)):
        for tensor in tensors:
            tensor.allowed_formats = frozenset([formats])
    return network


@functools.cache
def affine(factor=2.0, shift=1.0, *, name="affine", layout="CHW16", platform="orin", software="10.3"):
    """The loadable of factor * x + shift in FP16, of x of SHAPE."""
    network = Network(name)
    x = network.add_input("x", DataType.HALF, SHAPE)
    factors, shifts = np.float32([factor]), np.float32([shift])
    network.mark_output(named(network.add_scale(x, ScaleMode.UNIFORM, shifts, factors), "y"))
    asked = config(platform, software)
    return Builder().build_serialized_network(with_formats(network, layout, layout), asked)


@functools.cache
def two_by_two():
    """The loadable of two inputs and two outputs: a + b, and its ReLU."""
    network = Network("two by two")
    a, b = (network.add_input(name, DataType.HALF, SHAPE) for name in "ab")
    total = add(network, a, b, "sum")
    network.mark_output(total)
    network.mark_output(activation(network, total, "positive"))
    return Builder().build_serialized_network(with_formats(network, "CHW16", "CHW16"), config())


@functools.cache
def convolutions(read="CHW16", written="CHW16"):
    """(engine, loadable) of one FP16 network: two convolutions with an activation between, of 3 channels to 5."""
    network = Network("convolutions")
    network.mark_output(_two_convolutions(network, network.add_input("x", DataType.HALF, (1, 3, 5, 7))))
    with_formats(network, read, written)
    engine = Builder().build_engine(network, config(capability=EngineCapability.STANDARD))
    return engine, Builder().build_serialized_network(network, config())


@functools.cache
def quantized(channels=3):
    """(engine, loadable) of the same in INT8. The engine reads and writes FP32."""
    network = Network("quantized")
    network.mark_output(_two_convolutions(network, network.add_input("x", DataType.FLOAT, (1, channels, 5, 7))))
    for name, largest in (("x", 16.0), ("first", 400.0), ("relu", 400.0), ("last", 4000.0)):
        network.tensor(name).dynamic_range = (-largest, largest)
    asked = dla_config()
    asked.set_flag(BuilderFlag.INT8)
    return Builder().build_engine(network, asked), Builder().build_loadables(network, asked).files[0]


def _two_convolutions(network, x):
    y = activation(network, convolution(network, x, "first", maps=20), "relu")
    return convolution(network, y, "last", maps=5, seed=3)


def numbers(seed=0, shape=SHAPE, dtype=np.float16):
    """Small whole numbers, so that FP16 has what is computed of them exactly."""
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(dtype)


def memory_of(tensor, array=None, *, device=None):
    """A buffer of a tensor's size, with an array in it; registered where a device is given."""
    buffer = np.full(tensor.size_bytes, 0xA5, np.uint8)
    if array is not None:
        tensor.write(buffer, array)
    return buffer if device is None else device.register(buffer)


def task_of(module, array=None):
    """A task of a module of one input and one output with memory of its own."""
    (read,), (written,) = module.input_attributes, module.output_attributes
    values = numbers() if array is None else array
    return Task(module, [memory_of(read, values, device=module.device)], [memory_of(written, device=module.device)])


def result_of(task, index=0):
    """The output that a task has written."""
    return task.module.output_attributes[index].read(task.outputs[index].data)
