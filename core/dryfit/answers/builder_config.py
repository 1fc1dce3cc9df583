"""The builder config built from options, and the settings they apply to layers, inputs and outputs of a network."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from dryfit.answers.defaults import without_best
from dryfit.answers.options import CONSTRAINTS, PRECISION_FLAGS, NetworkOptions
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability
from dryfit.builder.config.layer_rules import LayerPattern, PlacementRules, PrecisionRules
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.config.trtexec_spellings import parse_io_formats, parse_memory_pool_sizes, set_io_formats
from dryfit.errors import ConfigError, DryfitError, UnknownNameError
from dryfit.network.network import Network
from dryfit.passes.quantized_operators.operator_of_group import NONE
from dryfit.plugins import registry
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.short_text import count_text
from dryfit.target.overlays import Overlay
from dryfit.target.target import platform_key

METHOD_OPTION = "--quantize-method"
_PLACE = "place"


def config_of(network: Network, options: NetworkOptions) -> tuple[BuilderConfig, list[str]]:
    """Return the builder config for the options, with a note for each option that was adjusted.

    Args:
        network: network that receives the ranges, types, formats, methods and pruned weights set by the options.
        options: options with defaults filled in.

    Raises:
        UnknownNameError: A device, platform or power mode does not exist.
        ConfigError: The options conflict, or the placement fails.
        CalibrationError: A file of scales or ranges is corrupt, or belongs to another network.
    """
    config, device, notes = BuilderConfig(), options.default_device, list[str]()
    config.default_device_type = device
    if options.platform is not None:
        config.set_platform(device, options.platform)
        notes += _platform_notes(config, options)
    if options.software is not None:
        config.set_software(device, options.software)
    config.overlays = options.overlays
    if options.power_mode is not None:
        config.platform(device).power_mode(options.power_mode)  # refuses a name that the board does not have
        config.power_mode = options.power_mode
    for word in without_best(options.precision, device):
        if word in PRECISION_FLAGS:
            config.set_flag(BuilderFlag[PRECISION_FLAGS[word]])
    constraint = CONSTRAINTS[options.precision_constraints or "none"]
    if constraint is not None:
        config.set_flag(BuilderFlag[constraint])
    if options.no_tf32:
        config.clear_flag(BuilderFlag.TF32)
    if options.use_dla_core is not None:
        config.DLA_core = options.use_dla_core
    config.allow_fallback(options.fallback_device)
    config.assume_scales = options.assume_scales
    _add_profile(config, options)
    _take_scales(network, config, options)
    _take_layer_types(network, options)
    take_quantize_methods(network, options.quantize_method)
    _take_io_formats(network, config, options)
    _take_capability(config, options)
    notes += _take_pools(config, options)
    # Near the end, so that a script can ask the config what can run where.
    apply_placement(options.placement, options.layer_device_types, network, config)
    notes += _take_sparsity(network, config, options)
    notes += unused_overlay_notes(options.overlays, config.overlay_labels)
    return config, notes


def unused_overlay_notes(overlays: Iterable[Overlay], active: Container[str]) -> list[str]:
    """Return a note on each overlay that corrects no device of the build.

    Args:
        overlays: the given ones.
        active: labels of those that correct a device.
    """
    return [
        f"Note: {one.where} has no effect: it corrects {' and '.join(sorted(one.devices)) or 'nothing'}, which this "
        "build does not use."
        for one in overlays
        if one.label not in active
    ]


def _platform_notes(config: BuilderConfig, options: NetworkOptions) -> list[str]:
    """Return notes on the board that an ambiguous name was resolved to."""
    asked, platform = platform_key(str(options.platform)), config.platform(options.default_device)
    target = registry.target(options.default_device)
    alike = [one for one in target.platforms if one.name.startswith(f"{asked}-")]
    if asked not in platform.aliases or platform not in alike[:1] or not alike[1:]:
        return []
    boards = ", ".join(f"{one.name} ({count_text(one.cores, f'{target.device} core')})" for one in alike)
    return [f"Note: --platform {options.platform} is taken as {platform.name}. Boards of this name: {boards}."]


def _add_profile(config: BuilderConfig, options: NetworkOptions) -> None:
    """Add one optimization profile for the inputs with a range or values."""
    ranges = {name: asked for name, asked in options.shape.items() if len(asked) == 3}
    if ranges or options.shape_values:
        profile = OptimizationProfile()
        for name, (least, best, largest) in ranges.items():
            profile.set_shape(name, least, best, largest)
        for name, asked in options.shape_values.items():
            profile.set_shape_input(name, asked[0], asked[len(asked) // 2], asked[-1])
        config.add_optimization_profile(profile)


def _take_scales(network: Network, config: BuilderConfig, options: NetworkOptions) -> None:
    if options.calibration_cache is not None:
        config.calibration_cache = options.calibration_cache
    if options.ranges is not None:
        from dryfit.quantization.cache_forms import read_ranges, set_ranges

        set_ranges(network, read_ranges(options.ranges), str(options.ranges))


def _take_layer_types(network: Network, options: NetworkOptions) -> None:
    if options.layer_precisions is not None:
        PrecisionRules.parse(*listed_layers(options.layer_precisions, "--layer-precisions")).set_precisions(network)
    if options.layer_output_types is not None:
        PrecisionRules.parse(*listed_layers(options.layer_output_types, "--layer-output-types")).set_output_types(
            network
        )


def listed_layers(given: str, option: str) -> tuple[str, str]:
    """Return (list of layers, its origin): the option's own text, or the contents of the file after an @."""
    if not given.startswith("@"):
        return given, option
    where = f"{option}, {given[1:]}"
    return _text(Path(given[1:]), "The list of layers cannot be parsed", where).replace("\n", ","), where


def refuse_quantize_methods(options: NetworkOptions, problem: str, remedy: str = "") -> None:
    """Reject quantize methods for a question that does not support them.

    Args:
        options: the given options.
        problem: why, the subject of the message.
        remedy: what to do; "" for leaving out the option.

    Raises:
        ConfigError: A quantize method is set; the message states the problem.
    """
    if options.quantize_method:
        raise ConfigError(
            problem,
            where=METHOD_OPTION,
            found=", ".join(sorted({method for _, method in options.quantize_method})),
            remedy=remedy or "Leave out --quantize-method: quantize methods run on the CPU of this machine",
        )


def take_quantize_methods(network: Network, given: tuple[tuple[str, str], ...]) -> None:
    """Set the quantize method of the layers that match each pattern; later patterns win.

    Raises:
        UnknownNameError: A method does not exist.
        ConfigError: Some patterns match no layer; the message lists all of them.
    """
    for _, method in given:
        if method != NONE:
            quantize_method(method, where=METHOD_OPTION)
    patterns = [(LayerPattern(pattern, repr(f"{pattern}={method}")), method) for pattern, method in given if pattern]
    unmatched = [one.problem(network.layers) for one, _ in patterns if not one.layers_in(network.layers)]
    if unmatched:
        raise ConfigError(
            "The quantize methods must match the network",
            where=METHOD_OPTION,
            found="; ".join(unmatched),
            remedy="Use names or patterns of layers: `dryfit check --verbose` lists them",
        )
    for one, method in patterns:
        for layer in one.layers_in(network.layers):
            layer.quantize_method = method


def _take_io_formats(network: Network, config: BuilderConfig, options: NetworkOptions) -> None:
    said = ((options.input_io_formats, "--input-io-formats"), (options.output_io_formats, "--output-io-formats"))
    set_io_formats(network, *([] if text is None else parse_io_formats(text, option) for text, option in said))
    if options.direct_io:
        config.set_flag(BuilderFlag.DIRECT_IO)


def _take_capability(config: BuilderConfig, options: NetworkOptions) -> None:
    config.engine_capability = EngineCapability[
        "DLA_STANDALONE" if options.is_standalone else options.engine_capability.upper()
    ]
    if options.standalone:
        config.set_flag(BuilderFlag.DIRECT_IO)
        if not any(map(config.get_flag, (BuilderFlag.FP16, BuilderFlag.INT8))):
            config.set_flag(BuilderFlag.FP16)


def _take_pools(config: BuilderConfig, options: NetworkOptions) -> list[str]:
    if options.mem_pool_size is None:
        return []
    sizes = parse_memory_pool_sizes(options.mem_pool_size, "--mem-pool-size")
    for pool, size in sizes.limits.items():
        config.set_memory_pool_limit(pool, size)
    return [*sizes.notes]


def _take_sparsity(network: Network, config: BuilderConfig, options: NetworkOptions) -> list[str]:
    """Set the sparsity flag, and prune the network's weights if it is forced."""
    if options.sparsity == "disable":
        return []
    config.set_flag(BuilderFlag.SPARSE_WEIGHTS)
    if options.sparsity == "enable":
        return []
    from dryfit.answers.pruning import ACCURACY, plan_pruning

    pruning = plan_pruning(network, config)
    pruning.apply(network)
    return [f"--sparsity force: {pruning}. {ACCURACY if pruning.pruned else ''}".rstrip()]


# Devices of single layers ---------------------------------------------------------------------------------------------


def apply_placement(placement: Any, layer_device_types: str | None, network: Network, config: BuilderConfig) -> None:
    """Set the requested devices of layers; `layer_device_types` are applied last and win.

    Args:
        placement: a function called with the network and config, a mapping of patterns to devices, or a path. A `.py`
            file is a script whose `place(network, config)` is called, a `.json` file holds one object of patterns to
            devices, any other file uses the text form of `PlacementRules`.
        layer_device_types: `name:DEVICE,...`.
        network: the network as imported.
        config: config that is complete except for the devices of single layers, so that a script can call `can_run_on`.

    Raises:
        ConfigError: The file cannot be read, the script fails, or a rule matches no layer.
    """
    if isinstance(placement, Path) and placement.suffix == ".py":
        run_script(placement, network, config)
    elif isinstance(placement, Path):
        _rules(placement).apply(network, config)
    elif isinstance(placement, Mapping):
        PlacementRules.from_mapping(placement, "placement").apply(network, config)
    elif placement is not None:
        placement(network, config)
    if layer_device_types is not None:
        PlacementRules.parse_layer_device_types(layer_device_types).apply(network, config)


def run_script(path: Path, network: Network, config: BuilderConfig) -> None:
    """Run a placement script and call its `place(network, config)`.

    Raises:
        ConfigError: The script cannot be read, does not define the function, or raised; the message includes the line.
    """
    namespace: dict[str, Any] = {"__name__": "dryfit_placement", "__file__": str(path)}
    source = _text(path, "The placement file cannot be read", str(path))
    _run(path, lambda: exec(compile(source, str(path), "exec"), namespace))  # noqa: S102  the user's own script
    function = namespace.get(_PLACE)
    if not callable(function):
        defined = [name for name, value in namespace.items() if callable(value) and not name.startswith("_")]
        raise UnknownNameError("function", _PLACE, defined, where=f"placement script {path}")
    _run(path, lambda: function(network, config))


def _run(path: Path, step: Callable[[], object]) -> None:
    try:
        step()
    except SyntaxError as error:
        line = error.lineno if error.filename == str(path) else _line(path, error)
        raise ConfigError(
            "The placement script is not valid Python",
            where=_where(path, line),
            found=error.msg,
            remedy="Fix the script at this line",
        ) from error
    except SystemExit as error:
        message = "The placement script must not exit the program"
        raise ConfigError(
            message,
            where=_where(path, _line(path, error)),
            found=f"exit {error.code}",
            remedy="Return from the function instead of exiting",
        ) from error
    except Exception as error:
        reason = str(error) if isinstance(error, DryfitError) else f"{type(error).__name__}: {error}"
        where = _where(path, _line(path, error))
        raise ConfigError(
            "The placement script failed",
            where=where,
            found=reason,
            remedy="Fix the script at this line; it receives the network and the config",
        ) from error


def _line(path: Path, error: BaseException) -> int | None:
    """Return the last line of the script that the exception passed through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _where(path: Path, line: int | None) -> str:
    return str(path) if line is None else f"{path}, line {line}"


def _rules(path: Path) -> PlacementRules:
    text = _text(path, "The placement file cannot be read", str(path))
    if path.suffix != ".json":
        return PlacementRules.parse(text, str(path))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "The placement file cannot be read",
            where=str(path),
            found=error,
            remedy="Fix the JSON text, or give rules the suffix .txt",
        ) from error
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise ConfigError(
            "A placement file with the suffix .json is one JSON object of patterns to devices",
            where=str(path),
            allowed='{"conv1": "GPU"}',
            remedy="Write one object of strings, or rules in a file with the suffix .txt",
        )
    return PlacementRules.from_mapping(data, str(path))


def _text(path: Path, problem: str, where: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            problem, where=where, found=error, remedy="Check the path and the permissions; the file must be UTF-8 text"
        ) from error
