"""Which packages an engine needs: who brought its devices, plugin layers and quantize methods when it was built."""

from __future__ import annotations

from dryfit.engine.plan import Plan
from dryfit.plugins import registry


def target_key(device: str) -> str:
    """The key of a device in `Plan.packages`."""
    return f"target {device}"


def layer_key(name: str, version: str, namespace: str = "") -> str:
    """The key of a layer plugin in `Plan.packages`: `layer Name 1`, or `layer namespace::Name 1`."""
    return f"layer {namespace}::{name} {version}" if namespace else f"layer {name} {version}"


def method_key(name: str) -> str:
    """The key of a quantize method in `Plan.packages`."""
    return f"quantize_method {name}"


def install_remedy(plan: Plan, key: str) -> str:
    """What to do where something that an engine needs is not installed.

    Args:
        plan: of the engine.
        key: what is missing, as `target_key`, `layer_key` or `method_key` names it.
    """
    package = plan.packages.get(key)
    if not package:
        return f"Install what it was built with ({', '.join(plan.plugins) or 'dryfit'}), or build the engine again"
    distribution, _, version = package.partition(" ")
    unusable = registry.installed().unusable(distribution)
    if unusable:
        return f"{distribution} is installed, but {'; '.join(unusable)}"
    built_with = f" (the engine was built with {version})" if version else ""
    return f"Install it: pip install {distribution}{built_with}, or build the engine again"
