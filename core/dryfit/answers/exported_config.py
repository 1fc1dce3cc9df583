"""The network and config that `dryfit export trtexec` exports, from a model with options or from an engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dryfit.answers.asked import Asked, Model, asked, import_model
from dryfit.answers.builder_config import refuse_quantize_methods
from dryfit.answers.defaults import with_defaults
from dryfit.answers.options import NetworkOptions
from dryfit.board.from_config import TENSORRT_DEVICES
from dryfit.board.versions import Version, layers_by_name
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import DeviceType
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.config.settings import config_from_settings
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.engine.engine import Engine
from dryfit.engine.plan import LayerPlacement
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.plugins.contributions import ImportOptions


def config_for_board(model: Model, config: BuilderConfig | None, options: Mapping[str, Any]) -> Asked:
    """Return the network of a model, with its dynamic inputs left dynamic, and its config.

    Args:
        model: model to export.
        config: the user's config; None to use the options.
        options: keyword arguments, see `dryfit.answers.options.Options`.

    Raises:
        ConfigError: The options conflict with each other or with the model, or require other weights than it has.
    """
    subject = asked(model, config, options, defaults=_as_board_takes_them)
    subject.refuse_other_formats(
        "A board with TensorRT", "Convert the model to ONNX, for example with tflite2onnx, and export that"
    )
    return subject


def _as_board_takes_them(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
    refuse_quantize_methods(options, "Quantize methods cannot be exported to a board")
    if options.sparsity == "force":
        raise ConfigError(
            "Weights pruned in memory cannot be exported",
            where="--sparsity",
            found="force",
            remedy="Run `dryfit sparsity prune` and export what it wrote, with --sparsity enable",
        )
    # A board is told one shape as a profile whose three shapes are equal: the model stays as it is.
    shapes = {name: said if len(said) == 3 else said * 3 for name, said in options.shape.items()}
    filled, assumed = with_defaults(options)
    return attrs.evolve(filled, shape=shapes), assumed


def config_of_engine(engine: Engine, onnx: Path, options: NetworkOptions) -> tuple[Network, BuilderConfig]:
    """Return the network of an engine's model, and the config that the engine was built with.

    Args:
        engine: engine to export.
        onnx: path of the ONNX model that the engine was built from.
        options: DLA core of the board, which an engine does not store; no other option is allowed.

    Raises:
        ConfigError: The engine was built from another model, or other options were given.
    """
    _require_no_options(options)
    network, config = _of_engine(engine, onnx)
    if options.use_dla_core is not None:
        config.DLA_core = options.use_dla_core
    return network, config


def _require_no_options(options: NetworkOptions) -> None:
    """Reject options for an engine, which has its own settings.

    Raises:
        ConfigError: Options were given; the message lists them.
    """
    usual = NetworkOptions()
    # Which DLA of the board runs an engine is no part of it.
    free = {"use_dla_core"}
    names = [field.name for field in attrs.fields(NetworkOptions) if field.eq and field.name not in free]
    given = [name for name in names if getattr(options, name) != getattr(usual, name)]
    if given:
        raise ConfigError(
            "Build options cannot be given for an engine",
            where="--onnx",
            found=f"options for {', '.join(name.replace('_', ' ') for name in given)}",
            remedy="Leave them out, or export the model with them",
        )


def _of_engine(engine: Engine, onnx: Path) -> tuple[Network, BuilderConfig]:
    """Return the network and config that an engine was built from, as far as it contains them."""
    plan = engine.plan
    built = plan.network if plan.refit is None else plan.refit.network
    network = import_model(onnx, ImportOptions(flags=built.flags)).network
    config = config_from_settings(plan.settings, network)
    inputs = {tensor.name: tensor for tensor in plan.network.inputs}
    borders = {**inputs, **{tensor.name: tensor for tensor in plan.network.outputs}}
    lacking = [tensor.name for tensor in (*network.inputs, *network.outputs) if tensor.name not in borders]
    if lacking:
        raise ConfigError(
            "The model must be the one that the engine was built from",
            where=f"--onnx {onnx}",
            found=f"{lacking[0]!r}, not in the engine",
            remedy="Pass the ONNX model that this engine was built from, or build the engine again from this model",
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
    """Set the engine's shapes where the model's are dynamic and no profile covers them."""
    fixed = {one.name: shapes[one.name] for one in network.inputs if -1 in one.shape and -1 not in shapes[one.name]}
    profiles = [config.get_optimization_profile(index) for index in range(config.num_optimization_profiles)]
    for profile in profiles or [OptimizationProfile()]:
        for name, shape in fixed.items():
            profile.set_shape(name, shape, shape, shape)
        if fixed and not profiles:
            config.add_optimization_profile(profile)


@contextlib.contextmanager
def every_device_stated(
    network: Network, config: BuilderConfig, placed: Sequence[LayerPlacement]
) -> Iterator[list[str]]:
    """Assign each layer to the device on which it is placed; on exit the previous state is restored.

    Args:
        network: the user's network.
        config: config that receives the devices.
        placed: placement of the layers. Shape computations, and nodes whose layers are split, are left to the board.

    Yields:
        Notes on what is left to the builder on the board.
    """
    own = {layer: config.get_device_type(layer) for layer in network.layers if config.is_device_type_set(layer)}
    devices = {one.layer: one.device for one in placed if one.segment >= 0 and one.device in TENSORRT_DEVICES}
    notes = []
    try:
        for name, layers in layers_by_name(network).items():
            known = {devices[layer.name] for layer in layers if layer.name in devices}
            if len(known) > 1:
                told = f"it has layers on {' and '.join(sorted(known))}"
                notes.append(f"The device of ONNX node {name!r} is left to the builder on the board: {told}")
            for layer in layers if len(known) == 1 else ():
                config.set_device_type(layer, *known)
        yield notes
    finally:
        for layer in network.layers:
            config.reset_device_type(layer)
        for layer, device in own.items():
            config.set_device_type(layer, device)


def board_version(config: BuilderConfig, stated: str | None) -> Version:
    """Return the TensorRT version of the board: the given one, or the one whose rules apply to the config's devices.

    Raises:
        ConfigError: The text is not a version.
    """
    if stated is None:
        return config.software(config.default_device_type) or config.software(DeviceType.DLA)
    if not all(part.isdigit() for part in stated.split(".")):
        raise ConfigError(
            "A TensorRT version must be numbers with dots",
            where="--tensorrt",
            found=stated,
            remedy="Write it like 8.6 or 10.3",
        )
    return tuple(int(part) for part in stated.split("."))
