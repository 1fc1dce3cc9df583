"""What is known of a target on one platform with one software version, and how two such differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryfit.answers.text import bytes_text
from dryfit.errors import ConfigError

if TYPE_CHECKING:
    from dryfit.target.limits import Rule
    from dryfit.target.target import Platform, Target

PLATFORM_PARAMETERS = ("platform family", "software version")
"""What rules look at that say nothing about a layer: see `dryfit.target.checks`."""


def side_facts(text: str, device: str) -> dict[str, Any]:
    """The facts of one side of a comparison, such as `orin`, `orin@8.5` or `dla@8.4`.

    Args:
        text: a platform or a device, and a software version where it has an `@`; the newest where it has none.
        device: the device of a platform.

    Raises:
        UnknownNameError: it is neither a device nor a platform of `device`.
        ConfigError: no platform of the device, or not this one, has the version.
    """
    from dryfit.plugins import registry

    name, _, version = text.partition("@")
    named = registry.find_target(name)
    if named is None:
        target = registry.target(device)
        platform = target.platform(name)
        return target_facts(target, platform, target.software(version or None, platform))
    target = named
    for platform in target.platforms:
        try:
            return target_facts(target, platform, target.software(version or None, platform))
        except ConfigError:
            # Another platform may have it.
            continue
    raise ConfigError(
        f"No platform of {target.device} has this software version",
        found=version,
        allowed=", ".join(map(_version, target.software_versions)) or "none: it has one rule set",
    )


def target_facts(target: Target, platform: Platform, software: tuple[int, ...]) -> dict[str, Any]:
    """Everything that may differ between two platforms or versions, as plain data."""
    formats = (("input", target.input_formats), ("output", target.output_formats))
    rules = [] if target.limits is None else target.limits.all_rules
    return {
        "device": target.device,
        "platform": platform.name,
        "software": _version(software),
        "platforms_with_software": _platforms_with(target, software),
        "cores": platform.cores,
        "segment_limit": target.segment_rules.segment_limit(software),
        "formats": [
            {
                "direction": direction,
                "type": dtype.name,
                "format": one.name,
                "line_alignment_bytes": one.line_alignment_bytes.get(
                    platform.family, one.line_alignment_bytes.get("", 1)
                ),
                "source": one.source,
            }
            for direction, table in formats
            for dtype, listed in table.items()
            for one in listed
        ],
        "memory_pools": [
            {
                "name": pool.name,
                "holds": pool.holds,
                "default_bytes": pool.default_for(platform.family),
                "default": _size(pool.default_for(platform.family)),
                "source": pool.source,
            }
            for pool in target.memory_pools
        ],
        "arithmetic": [
            {
                "precision": precision.name,
                "accumulator": one.accumulator.name,
                "rounding": one.rounding_for(software).value,
                "fidelity": one.fidelity,
                "source": one.source,
            }
            for precision, one in target.arithmetic.items()
        ],
        "fusions": [
            {
                "name": one.name,
                "kinds": " + ".join(one.kinds),
                "source": one.source,
            }
            for one in target.fusions or ()
        ],
        "limits": [
            {
                "rule": rule.id,
                "kinds": sorted(rule.kinds) or ["every kind"],
                "text": rule.text,
                "fidelity": rule.fidelity,
                "source": rule.source,
                "refuses_every_layer": _refuses_every_layer(rule, target, platform, software),
            }
            for rule in rules
            if rule.holds_for(platform.family, software)
        ],
    }


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[dict[str, str]]:
    """What differs, one entry a fact: what it is about, its name, and what it is on each side."""
    sides = [_flat(first), _flat(second)]
    return [
        {
            "about": about,
            "what": what,
            "first": sides[0].get((about, what), "none"),
            "second": sides[1].get((about, what), "none"),
        }
        for about, what in dict.fromkeys([*sides[0], *sides[1]])
        if sides[0].get((about, what)) != sides[1].get((about, what))
    ]


def _flat(facts: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Facts as (what they are about, name) to value, in the order in which they are shown."""
    limit = facts["segment_limit"]
    flat = {
        ("platform", "platforms with this software"): ", ".join(facts["platforms_with_software"]),
        ("platform", "cores"): str(facts["cores"]),
        ("segments", "segments a core"): "no limit" if limit is None else str(limit),
    }
    flat |= {
        ("format", f"{one['direction']} format {one['format']} ({one['type']})"): (
            f"lines of a multiple of {one['line_alignment_bytes']} bytes" if one["line_alignment_bytes"] > 1 else "yes"
        )
        for one in facts["formats"]
    }
    flat |= {("pool", f"pool {pool['name']}"): pool["default"] for pool in facts["memory_pools"]}
    flat |= {("arithmetic", f"rounding of {one['precision']}"): one["rounding"] for one in facts["arithmetic"]}
    for rule in facts["limits"]:
        never = "refuses every such layer: " if rule["refuses_every_layer"] else ""
        flat["rule", rule["rule"]] = f"{never}{rule['text']}"
    return flat


def _refuses_every_layer(rule: Rule, target: Target, platform: Platform, software: tuple[int, ...]) -> bool:
    """Whether a rule on the platform or the version alone fails, so that it fails for whatever layer is asked about."""
    from dryfit.network.data_types import DataType
    from dryfit.target.question import Question

    if rule.parameter not in PLATFORM_PARAMETERS or rule.when:
        return False
    no_layer: Any = None
    asked = Question(no_layer, DataType.HALF, target.device, platform.name, platform.family, software)
    return rule.check(asked) is not None


def _platforms_with(target: Target, software: tuple[int, ...]) -> list[str]:
    """Names of the platforms that have a software version."""
    found = []
    for platform in target.platforms:
        try:
            target.software(_version(software) or None, platform)
        except ConfigError:
            continue
        found.append(platform.name)
    return found


def _version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _size(size: int | None) -> str:
    return "no limit" if size is None else bytes_text(size)
