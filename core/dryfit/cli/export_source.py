"""What `dryfit export trtexec` exports: the network and the config of a model with options, or of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from dryfit.answers.asked import load_network, require_shapes
from dryfit.answers.builder_config import refuse_quantize_methods
from dryfit.answers.options import NetworkOptions
from dryfit.board.from_config import TENSORRT_DEVICES
from dryfit.board.layer_names import layers_by_name
from dryfit.board.versions import Version
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import DeviceType
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.config.settings import config_from_settings
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.building import assess
from dryfit.cli.log import log_to_stderr
from dryfit.cli.network_config import create_config
from dryfit.engine.engine import Engine
from dryfit.engine.plan import LayerPlacement
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.onnx.parser import network_from_onnx


def exported_config(
    model: Path, onnx: Path | None, options: NetworkOptions, *, every_layer: bool
) -> tuple[Network, BuilderConfig, list[str]]:
    """The network of a model, dynamic inputs left dynamic, the config of options or an engine for it, and notes.

    Args:
        model: an ONNX model; with `onnx` an engine that was built from that.
        onnx: the engine's model.
        options: for a model.
        every_layer: whether each layer gets the device on which it is placed.

    Raises:
        ConfigError: the options do not fit together or to the model, ask for other weights than it has, or stand beside
            an engine.
        EngineFileError: the engine is damaged, or of another version of dryfit.
    """
    if onnx is not None:
        _require_no_options(options)
        engine = Engine.load(model)
        network, config = _of_engine(engine, onnx)
        return network, config, state_every_device(network, config, engine.plan.layers) if every_layer else []
    refuse_quantize_methods(options, "A board computes as its devices do")
    if options.sparsity == "force":
        raise ConfigError(
            "The board builds from the model's own weights",
            where="--sparsity",
            found="force",
            remedy="Run `dryfit sparsity prune` and export what it wrote, with --sparsity enable",
        )
    # A board is told one shape as a profile whose three shapes are equal: the model stays as it is.
    shapes = {name: asked if len(asked) == 3 else asked * 3 for name, asked in options.shape.items()}
    network = load_network(model, attrs.evolve(options, shape=shapes))
    require_shapes(network, shapes)
    config = create_config(network, attrs.evolve(options, shape=shapes))
    if not every_layer:
        return network, config, []
    with log_to_stderr(None):  # where layers go is in what is written
        placed = assess(network, config).layers
    return network, config, state_every_device(network, config, placed)


def _require_no_options(options: NetworkOptions) -> None:
    """Refuse options beside an engine, which has its own settings.

    Raises:
        ConfigError: names what was given.
    """
    usual = NetworkOptions()
    # Which DLA of the board runs an engine is no part of it.
    free = {"use_dla_core"}
    names = [field.name for field in attrs.fields(NetworkOptions) if field.eq and field.name not in free]
    given = [name for name in names if getattr(options, name) != getattr(usual, name)]
    if given:
        raise ConfigError(
            "An engine says itself what it was built with",
            where="--onnx",
            found=f"options for {', '.join(name.replace('_', ' ') for name in given)}",
            remedy="Leave them out, or export the model with them",
        )


def _of_engine(engine: Engine, onnx: Path) -> tuple[Network, BuilderConfig]:
    """The network and the config that an engine was built from, as far as it keeps them."""
    plan = engine.plan
    built = plan.network if plan.refit is None else plan.refit.network
    network = network_from_onnx(onnx, flags=built.flags)
    config = config_from_settings(plan.settings, network)
    inputs = {tensor.name: tensor for tensor in plan.network.inputs}
    borders = {**inputs, **{tensor.name: tensor for tensor in plan.network.outputs}}
    lacking = [tensor.name for tensor in (*network.inputs, *network.outputs) if tensor.name not in borders]
    if lacking:
        raise ConfigError(
            "The engine was built from another model",
            where=f"--onnx {onnx}",
            found=f"{lacking[0]!r}, not in the engine",
        )
    _fix_shapes(network, config, {name: tensor.shape for name, tensor in inputs.items()})
    for tensor in (*network.outputs, *network.inputs):
        border = borders[tensor.name]
        if border.allowed_formats is not None or (tensor.name in inputs and border.dtype is not tensor.dtype):
            IoFormat.of(border).set_on(tensor)
    kept = {layer.name: layer for layer in built.layers}
    for layer in network.layers:
        if layer.name in kept:
            layer.precision = kept[layer.name].precision
            layer.output_types = dict(kept[layer.name].output_types)
    for tensor in network.tensors:
        same = built.find_tensor(tensor.name)
        tensor.dynamic_range = None if same is None else same.dynamic_range
    return network, config


def _fix_shapes(network: Network, config: BuilderConfig, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """State the shapes that the engine has where the model's are dynamic and no profile speaks of them."""
    fixed = {one.name: shapes[one.name] for one in network.inputs if -1 in one.shape and -1 not in shapes[one.name]}
    profiles = [config.get_optimization_profile(index) for index in range(config.num_optimization_profiles)]
    for profile in profiles or [OptimizationProfile()]:
        for name, shape in fixed.items():
            profile.set_shape(name, shape, shape, shape)
        if fixed and not profiles:
            config.add_optimization_profile(profile)


def state_every_device(network: Network, config: BuilderConfig, placed: Sequence[LayerPlacement]) -> list[str]:
    """Give each layer the device on which it is placed, so that the board need not decide; returns notes.

    Args:
        network: the user's.
        config: takes the devices.
        placed: where dryfit places the layers; shape computations, and nodes whose layers are apart, stay the board's.
    """
    devices = {one.layer: one.device for one in placed if one.segment >= 0 and one.device in TENSORRT_DEVICES}
    notes = []
    for name, layers in layers_by_name(network).items():
        known = {devices[layer.name] for layer in layers if layer.name in devices}
        if len(known) > 1:
            notes.append(
                f"The device of ONNX node {name!r} is left to the board: it has layers on {' and '.join(sorted(known))}"
            )
        for layer in layers if len(known) == 1 else ():
            config.set_device_type(layer, *known)
    return notes


def board_version(config: BuilderConfig, stated: str | None) -> Version:
    """TensorRT's version on the board: the one that is stated, or whose rules hold for the devices of the config.

    Raises:
        ConfigError: it is no version.
    """
    if stated is None:
        return config.software(config.default_device_type) or config.software(DeviceType.DLA)
    if not all(part.isdigit() for part in stated.split(".")):
        raise ConfigError("A TensorRT version is numbers with dots", where="--tensorrt", found=stated)
    return tuple(int(part) for part in stated.split("."))
