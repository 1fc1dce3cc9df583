"""The file that `dryfit place --output` writes: what `--placement` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryfit.atomic_file import write_atomically
from dryfit.errors import ConfigError, DryfitError
from dryfit.estimate_text import two_digits

if TYPE_CHECKING:
    from dryfit.network.network import Network

Report = dict[str, Any]


def write_placement(path: Path, network: Network, report: Report) -> None:
    """Write a placement: JSON for the suffix `.json`, else rules with a heading that says where they are from.

    Args:
        path: of the file.
        network: of which layers are named.
        report: see `dryfit.cli.place_report`.

    Raises:
        ConfigError: the suffix is that of a script, the names cannot be written as rules, or the file not at all.
    """
    devices: Mapping[str, str] = report["placement"]
    if path.suffix == ".py":
        raise ConfigError(
            "A placement is written as rules or as JSON", where=f"--output {path}", allowed="a suffix other than .py"
        )
    if path.suffix == ".json":
        text = json.dumps(dict(devices), indent=2) + "\n"
    else:
        text = rules_text(devices, _heading(report))
        _require_same(path, text, network, devices)
    write_atomically(path, [text.encode()])


def rules_text(devices: Mapping[str, str], heading: str = "") -> str:
    """Devices of layers as rules, one a line, below a comment.

    Args:
        devices: layer name to device.
        heading: lines of the comment.
    """
    comment = "".join(f"# {line}\n" for line in heading.splitlines())
    return comment + "".join(f"{name} = {device}\n" for name, device in devices.items())


def _require_same(path: Path, text: str, network: Network, devices: Mapping[str, str]) -> None:
    """Refuse rules that would be read as something else, as of a name with a line break or ` #` in it."""
    if _read(path, text, network) != devices:
        alone = {name: _read(path, rules_text({name: device}), network) for name, device in devices.items()}
        odd = [name for name, found in alone.items() if found != {name: devices[name]}]
        raise ConfigError(
            "Rules cannot name these layers",
            where=f"--output {path}",
            found=", ".join(map(repr, odd)),
            remedy="Give the file the suffix .json",
        )


def _read(path: Path, text: str, network: Network) -> dict[str, str]:
    """The devices that rules give; none where they are no rules."""
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.builder.config.layer_rules import PlacementRules

    config = BuilderConfig()
    try:
        PlacementRules.parse(text, str(path)).apply(network, config)
    except DryfitError:
        return {}
    return config.explicit_device_types(network)


def _heading(report: Report) -> str:
    chosen = next(one for one in report["options"] if one["is_chosen"])
    before = next(one for one in report["options"] if one["is_before"])
    variant = " ".join(filter(None, [report["platform"], report["software"]]))
    mode = "" if report["power_mode"] is None else f", power mode {report['power_mode']}"
    return (
        f"Devices for {report['objective']} on {report['device']} ({variant}{mode}) and {report['fallback']}.\n"
        f"All other layers stay on the default device, {report['device']}.\n"
        f"Estimated, not measured: {two_digits(chosen['value'])} {report['unit']}; without this file "
        f"{two_digits(before['value'])}."
    )
