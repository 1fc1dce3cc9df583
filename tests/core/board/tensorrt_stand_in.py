"""A stand-in of the module `tensorrt`: it remembers what a script sets, and has no name that its version lacks.

Enumerations and members are those of TensorRT 8.6 and 10; older ones lack what came later. The parser is dryfit's
importer, with the layer names of TensorRT's: a node's first layer has its name, the others a number behind it.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

from tests.core.board.tensorrt_enumerations import FORMATS, Version, enumerations

from dryfit.board.board_build import BoardBuild
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability, ProfilingVerbosity, QuantizationFlag
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import OnnxImportError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.onnx.parser import network_from_onnx
from dryfit.quantization.calibration_cache import parse

CONFIG_MEMBERS = {"default_device_type", "DLA_core", "engine_capability", "int8_calibrator", "profiling_verbosity"}


class Strict:
    """An object to which only the attributes in `settable` can be set from outside."""

    settable: frozenset[str] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.settable:
            raise AttributeError(f"{type(self).__name__} has no {name!r} to set")
        object.__setattr__(self, name, value)

    def keep(self, **attributes: Any) -> None:
        """Set attributes that belong to the object."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


class Tensor(Strict):
    settable = frozenset({"dtype", "allowed_formats", "dynamic_range"})

    def __init__(self, name: str) -> None:
        self.keep(name=name, dynamic_range=None)


class TrtLayer(Strict):
    settable = frozenset({"precision"})

    def __init__(self, layer: Layer, name: str, metadata: str | None, tensors: dict[str, Tensor]) -> None:
        self.keep(name=name, type=layer.type, output_types={}, layer=layer)
        if metadata is not None:
            self.keep(metadata=metadata)
        self.keep(inputs=[one and tensors[one.name] for one in layer.inputs])
        self.keep(outputs=[tensors[one.name] for one in layer.outputs])
        self.keep(num_inputs=len(self.inputs), num_outputs=len(self.outputs))

    def get_input(self, index: int) -> Tensor | None:
        return self.inputs[index]

    def get_output(self, index: int) -> Tensor:
        return self.outputs[index]

    def set_output_type(self, index: int, dtype: Any) -> None:
        self.output_types[index] = dtype


class TrtNetwork(Strict):
    def __init__(self, flags: int) -> None:
        self.keep(creation_flags=flags, num_layers=0)

    def take(self, network: Network, version: Version) -> None:
        """Have the layers of a parsed model."""
        tensors = {tensor.name: Tensor(tensor.name) for tensor in network.tensors}
        layers, taken = [], set()
        # The layer that carries the node's own name in dryfit is the one that TensorRT names so.
        for layer in sorted(network.layers, key=lambda one: (not one.onnx_nodes, one.name not in one.onnx_nodes)):
            node = layer.onnx_nodes[0] if layer.onnx_nodes else layer.name
            name = node if node not in taken else f"{node}_{len(taken)}"
            taken.add(name)
            mark = f"[ONNX Layer: {node}]" if layer.onnx_nodes else ""
            layers.append(TrtLayer(layer, name, mark if version >= (8, 6) else None, tensors))
        self.keep(layers=sorted(layers, key=lambda one: one.layer.index), tensors=tensors)
        self.keep(inputs=[tensors[one.name] for one in network.inputs])
        self.keep(outputs=[tensors[one.name] for one in network.outputs])
        self.keep(num_layers=len(layers), num_inputs=len(self.inputs), num_outputs=len(self.outputs))

    def get_layer(self, index: int) -> TrtLayer:
        return self.layers[index]

    def get_input(self, index: int) -> Tensor:
        return self.inputs[index]

    def get_output(self, index: int) -> Tensor:
        return self.outputs[index]


class Profile(Strict):
    def __init__(self) -> None:
        self.keep(shapes={}, values={})

    def set_shape(self, name: str, least: Any, best: Any, largest: Any) -> None:
        self.shapes[name] = (tuple(least), tuple(best), tuple(largest))

    def set_shape_input(self, name: str, least: Any, best: Any, largest: Any) -> None:
        self.values[name] = (tuple(least), tuple(best), tuple(largest))


class TimingCache(Strict):
    def __init__(self, known: bytes) -> None:
        self.keep(known=known)

    def serialize(self) -> bytes:
        return self.known + b"+"


class Config(Strict):
    def __init__(self, version: Version) -> None:
        more = {"builder_optimization_level"} if version >= (8, 6) else set()
        more |= {"max_workspace_size"} if version < (10,) else set()
        self.keep(settable=frozenset(CONFIG_MEMBERS | more), version=version)
        self.keep(flags={"TF32"}, quantization_flags=set(), devices={}, pools={}, profiles=[], timing_cache=None)

    def set_flag(self, flag: Any) -> None:
        self.flags.add(flag.name)

    def clear_flag(self, flag: Any) -> None:
        self.flags.discard(flag.name)

    def set_quantization_flag(self, flag: Any) -> None:
        self.quantization_flags.add(flag.name)

    def set_device_type(self, layer: TrtLayer, device: Any) -> None:
        self.devices[layer] = device.name

    def set_memory_pool_limit(self, pool: Any, limit: int) -> None:
        if self.version < (8, 4):
            raise AttributeError("set_memory_pool_limit")
        self.pools[pool.name] = limit

    def add_optimization_profile(self, profile: Profile) -> int:
        self.profiles.append(profile)
        return len(self.profiles) - 1

    def create_timing_cache(self, known: bytes) -> TimingCache:
        return TimingCache(known)

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool) -> bool:
        assert not ignore_mismatch
        self.keep(timing_cache=cache)
        return True

    def get_timing_cache(self) -> TimingCache:
        return self.timing_cache


class EntropyCalibrator2:
    """The base of a script's calibrator."""


def tensorrt_stand_in(version: Version) -> ModuleType:
    """The module; `built` is the network and the config of the last build."""
    module = ModuleType("tensorrt")
    module.__version__ = ".".join(map(str, (*version, 0, 0)[:3]))
    for name, kind in enumerations(version).items():
        setattr(module, name, kind)
    module.LayerType = SimpleNamespace(CONCATENATION="CONCATENATION", POOLING="POOLING")
    module.built = None

    class Logger(Strict):
        WARNING = 2

        def __init__(self, severity: int) -> None:
            self.keep(severity=severity)

    class Parser(Strict):
        def __init__(self, network: TrtNetwork, logger: Logger) -> None:
            self.keep(network=network, logger=logger, num_errors=1)

        def parse_from_file(self, path: str) -> bool:
            try:
                self.network.take(network_from_onnx(path), version)
            except OnnxImportError:
                return False
            return True

        def get_error(self, index: int) -> str:
            return f"error {index}: no such model"

    class Builder(Strict):
        def __init__(self, logger: Logger) -> None:
            self.keep(logger=logger)

        def create_network(self, flags: int) -> TrtNetwork:
            return TrtNetwork(flags)

        def create_builder_config(self) -> Config:
            return Config(version)

        def create_optimization_profile(self) -> Profile:
            return Profile()

        def build_serialized_network(self, network: TrtNetwork, config: Config) -> bytes:
            module.built = network, config
            return b"engine"

    module.Logger, module.OnnxParser, module.Builder = Logger, Parser, Builder
    module.IInt8EntropyCalibrator2 = EntropyCalibrator2
    module.init_libnvinfer_plugins = lambda logger, namespace: True
    return module


def recorded_build(module: ModuleType, version: Version) -> BoardBuild:
    """What a script set, as the build that it stands for. Placeholder ranges are not told from others."""
    network, config = module.built
    node = {layer: layer.layer.onnx_nodes[0] for layer in network.layers if layer.layer.onnx_nodes}
    settings = vars(config)
    calibrator = settings.get("int8_calibrator")
    workspace = {"WORKSPACE": settings["max_workspace_size"]} if "max_workspace_size" in settings else {}
    is_typed = version >= (10,) and bool(network.creation_flags >> 1 & 1)
    capability = getattr(settings.get("engine_capability"), "name", "STANDARD")
    verbosity = getattr(settings.get("profiling_verbosity"), "name", "LAYER_NAMES_ONLY")
    return BoardBuild(
        version,
        frozenset(BuilderFlag[name] for name in config.flags),
        getattr(settings.get("default_device_type"), "name", "GPU"),
        settings.get("DLA_core", -1),
        EngineCapability[capability],
        {node[layer]: device for layer, device in config.devices.items()},
        {node[one]: DataType[one.precision.name] for one in network.layers if "precision" in vars(one)},
        {
            node[one]: tuple(DataType[one.output_types[index].name] for index in range(one.num_outputs))
            for one in network.layers
            if one.output_types
        },
        tuple(map(_io_format, network.inputs)) if "allowed_formats" in vars(network.inputs[0]) else (),
        tuple(map(_io_format, network.outputs)) if "allowed_formats" in vars(network.outputs[0]) else (),
        {**config.pools, **workspace},
        tuple(ProfileShapes(profile.shapes, profile.values) for profile in config.profiles),
        None if calibrator is None else parse(calibrator.read_calibration_cache()).scales,
        False,
        is_typed,
        frozenset(QuantizationFlag[name] for name in config.quantization_flags),
        ProfilingVerbosity[verbosity],
        settings.get("builder_optimization_level", 3),
    )


def _io_format(tensor: Tensor) -> IoFormat:
    names = tuple(sorted(name for bit, name in enumerate(FORMATS) if tensor.allowed_formats >> bit & 1))
    return IoFormat(DataType[tensor.dtype.name], names)
