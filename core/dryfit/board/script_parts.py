"""The parts of the Python script for the board, as text. On the board they require only TensorRT."""

from __future__ import annotations

TITLE = '''#!/usr/bin/env python3
"""Build one model for one board from a dryfit config. Written by `dryfit export trtexec --script`.

Run it on the board: it needs TensorRT {version} and its Python package. `--help` shows which paths can be changed.
"""

import argparse
import sys
from pathlib import Path

import tensorrt as trt

'''

LAYERS = '''\
NODE_MARK = "[ONNX Layer: "


def node_of(layer):
    """The ONNX node that a layer came from, as the parser noted it; else the layer's own name."""
    if not layer.metadata.startswith(NODE_MARK):
        return layer.name
    name, _, more = layer.metadata[len(NODE_MARK) :].partition("] [")
    return name if more else name[:-1]


def named_layers(network, words, what):
    """Pairs of a layer and its entry, by the layer's name or its node's; names without a layer are reported."""
    found = set()
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        name = layer.name if layer.name in words else node_of(layer)
        if name in words:
            found.add(name)
            yield layer, words[name]
    for name in words:
        if name not in found:
            print(f"{what}: the network has no layer named {name!r}", file=sys.stderr)
'''

LAYERS_BY_NAME = '''\
def named_layers(network, words, what):
    """Pairs of a layer and its entry, by the layer's name; names without a layer are reported."""
    found = set()
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        if layer.name in words:
            found.add(layer.name)
            yield layer, words[layer.name]
    for name in words:
        if name not in found:
            print(f"{what}: the network has no layer named {name!r}", file=sys.stderr)
'''

FORMATS = '''\
def set_formats(tensors, stated):
    """Give inputs or outputs their types and the formats that they may have, one entry for each."""
    if len(tensors) != len(stated):
        sys.exit(f"The model has {len(tensors)} inputs or outputs where {len(stated)} are expected")
    for tensor, (dtype, formats) in zip(tensors, stated):
        tensor.dtype = trt.DataType.__members__[dtype]
        tensor.allowed_formats = sum(1 << int(trt.TensorFormat.__members__[name]) for name in formats)
'''

PROFILES = '''\
def add_profiles(builder, config):
    """Add the optimization profiles: least, best and largest shape, or values, of each dynamic input."""
    for shapes, values in PROFILES:
        profile = builder.create_optimization_profile()
        for name, (least, best, largest) in shapes.items():
            profile.set_shape(name, least, best, largest)
        for name, (least, best, largest) in values.items():
            profile.set_shape_input(name, least, best, largest)
        config.add_optimization_profile(profile)
'''

CALIBRATOR = '''\
class CacheReader(trt.IInt8EntropyCalibrator2):
    """A calibrator that has every scale already, and no data."""

    def __init__(self, path):
        trt.IInt8EntropyCalibrator2.__init__(self)
        self.cache = Path(path).read_bytes()

    def get_batch_size(self):
        return 1

    def get_batch(self, names):
        return None

    def read_calibration_cache(self):
        return self.cache

    def write_calibration_cache(self, cache):
        pass
'''

PLACEHOLDER_RANGES = '''\
def set_placeholder_ranges(network):
    """Make ranges up, as trtexec does without a cache: good for measuring time, and for nothing else."""
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        read = 4.0 if layer.type == trt.LayerType.CONCATENATION else 2.0
        written = 2.0 if layer.type == trt.LayerType.POOLING else 4.0
        for tensor in filter(None, (layer.get_input(number) for number in range(layer.num_inputs))):
            if tensor.dynamic_range is None:
                tensor.dynamic_range = (-read, read)
        for tensor in (layer.get_output(number) for number in range(layer.num_outputs)):
            if tensor.dynamic_range is None:
                tensor.dynamic_range = (-written, written)
'''

SET_INPUT_FORMATS = ("set_formats([network.get_input(index) for index in range(network.num_inputs)], INPUT_FORMATS)",)
SET_OUTPUT_FORMATS = (
    "set_formats([network.get_output(index) for index in range(network.num_outputs)], OUTPUT_FORMATS)",
)
SET_DEVICES = (
    'for layer, device in named_layers(network, DEVICES, "DEVICES"):',
    "    config.set_device_type(layer, trt.DeviceType.__members__[device])",
)
SET_PRECISIONS = (
    'for layer, precision in named_layers(network, PRECISIONS, "PRECISIONS"):',
    "    layer.precision = trt.DataType.__members__[precision]",
)
SET_OUTPUT_TYPES = (
    'for layer, types in named_layers(network, OUTPUT_TYPES, "OUTPUT_TYPES"):',
    "    for index in range(layer.num_outputs):",
    "        layer.set_output_type(index, trt.DataType.__members__[types[index % len(types)]])",
)

PARSE = '''\
def parse(parser, path):
    """Read the model, or end with what is wrong with it."""
    if not parser.parse_from_file(path):
        sys.exit("\\n".join(str(parser.get_error(index)) for index in range(parser.num_errors)))
'''

BUILD_HEAD = '''\
def build(paths):
    """The engine's bytes."""
    logger = trt.Logger(trt.Logger.WARNING)
    trt.init_libnvinfer_plugins(logger, "")
    builder = trt.Builder(logger)
'''

BUILD_END = """    engine = builder.build_serialized_network(network, config)
    if engine is None:
        sys.exit("TensorRT could not build the network: see the lines above")
{keep_timing_cache}    return engine
"""

READ_TIMING_CACHE = (
    "timing_cache = Path(paths.timing_cache)",
    'known = timing_cache.read_bytes() if timing_cache.exists() else b""',
    "config.set_timing_cache(config.create_timing_cache(known), False)",
)

KEEP_TIMING_CACHE = "    timing_cache.write_bytes(config.get_timing_cache().serialize())\n"

MAIN = '''\
def main():
    """Build, and save what was built."""
    parser = argparse.ArgumentParser(description=__doc__)
{options}    paths = parser.parse_args()
    if trt.__version__.split(".")[:2] != TENSORRT.split(".")[:2]:
        sys.exit("This script is for TensorRT %s, and here is %s: export it anew" % (TENSORRT, trt.__version__))
    Path(paths.engine).write_bytes(build(paths))


if __name__ == "__main__":
    main()
'''
