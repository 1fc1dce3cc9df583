"""`--placement FILE`: a script, the text form of rules, or JSON, and `--layer-device-types`."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryfit.errors import ConfigError, DryfitError, UnknownNameError

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.builder.placement.rules import PlacementRules
    from dryfit.network.network import Network

FUNCTION = "place"


def apply_placement(path: Path | None, layer_device_types: str | None, network: Network, config: BuilderConfig) -> None:
    """Give layers the devices that the user asks for; the option is applied after the file, and wins.

    Args:
        path: `.py`: a script whose `place(network, config)` is called; `.json`: one object of patterns to devices; any
            other file: the text form of `PlacementRules`.
        layer_device_types: `name:DEVICE,...`.
        network: as it was imported.
        config: complete but for the devices of single layers, so that a script can ask `can_run_on`.

    Raises:
        ConfigError: the file cannot be read, the script fails, or a rule does not fit.
    """
    if path is not None and path.suffix == ".py":
        run_script(path, network, config)
    elif path is not None:
        _rules(path).apply(network, config)
    if layer_device_types is not None:
        from dryfit.builder.placement.rules import PlacementRules

        PlacementRules.parse_layer_device_types(layer_device_types).apply(network, config)


def run_script(path: Path, network: Network, config: BuilderConfig) -> None:
    """Run a placement script and call its `place(network, config)`.

    Raises:
        ConfigError: it cannot be read, it has no such function, or it raised something; the message has the line.
    """
    namespace: dict[str, Any] = {"__name__": "dryfit_placement", "__file__": str(path)}
    source = _text(path)
    _run(path, lambda: exec(compile(source, str(path), "exec"), namespace))  # noqa: S102  the user's own script
    function = namespace.get(FUNCTION)
    if not callable(function):
        defined = [name for name, value in namespace.items() if callable(value) and not name.startswith("_")]
        raise UnknownNameError("function", FUNCTION, defined, where=f"placement script {path}")
    _run(path, lambda: function(network, config))


def _run(path: Path, step: Callable[[], object]) -> None:
    try:
        step()
    except SyntaxError as error:
        line = error.lineno if error.filename == str(path) else _line(path, error)
        raise ConfigError("The placement script is no Python", where=_where(path, line), found=error.msg) from error
    except SystemExit as error:
        message = "The placement script ended the program"
        raise ConfigError(message, where=_where(path, _line(path, error)), found=f"exit {error.code}") from error
    except Exception as error:
        reason = str(error) if isinstance(error, DryfitError) else f"{type(error).__name__}: {error}"
        raise ConfigError(
            "The placement script failed", where=_where(path, _line(path, error)), found=reason
        ) from error


def _line(path: Path, error: BaseException) -> int | None:
    """The last line of the script that the error went through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _where(path: Path, line: int | None) -> str:
    return str(path) if line is None else f"{path}, line {line}"


def _rules(path: Path) -> PlacementRules:
    from dryfit.builder.placement.rules import PlacementRules

    text = _text(path)
    if path.suffix != ".json":
        return PlacementRules.parse(text, str(path))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError("The placement file cannot be read", where=str(path), found=error) from error
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise ConfigError(
            "A placement file with the suffix .json is one JSON object of patterns to devices",
            where=str(path),
            allowed='{"conv1": "GPU"}',
        )
    return PlacementRules.from_mapping(data, str(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("The placement file cannot be read", where=str(path), found=error) from error
