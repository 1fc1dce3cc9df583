"""Whether what a package names as its target is one that dryfit can use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.errors import PluginError

if TYPE_CHECKING:
    from dryfit.target.target import Target


def usable_target(loaded: Any, device: str | None = None) -> Target:
    """The target record, if it is one.

    Args:
        loaded: what an entry point names, or a hook returned.
        device: the device that the entry point names; None where none does.

    Raises:
        PluginError: it is no target record, its device is another one, a field is of another type, or it declares no
            platform or no limit rules.
    """
    from dryfit.target.target import Target

    if not isinstance(loaded, Target):
        raise PluginError(
            "The entry point must name a target",
            found=type(loaded).__name__,
            allowed="a Target record",
            remedy="Let the entry point name a Target record",
        )
    if not loaded.device or loaded.device != loaded.device.upper():
        raise PluginError(
            "A device name must be in upper case",
            found=repr(loaded.device),
            remedy=f"Name the device {str(loaded.device).upper()!r}",
        )
    if device is not None and loaded.device != device:
        raise PluginError(
            "The entry point and its target name different devices",
            found=f"{loaded.device} in the record, {device} by the entry point",
            allowed="one name",
            remedy="Name the entry point after the device, in any case, with `-` for `_`",
        )
    problems = _field_problems(loaded)
    if problems:
        raise PluginError(
            f"The record of the target {loaded.device} has fields of another type",
            found="; ".join(problems),
            allowed="the types that the record declares",
            remedy="Set these fields to values of the declared types",
        )
    if not loaded.platforms:
        raise PluginError(
            f"The target {loaded.device} must have at least one platform",
            allowed="at least one",
            remedy="Add a Platform to `platforms`",
        )
    _require_limits(loaded)
    return loaded


def _require_limits(target: Target) -> None:
    """Refuse a target that says nothing of what it can run: it would promise everything.

    Raises:
        PluginError: it declares no rules, or its table cannot be loaded.
    """
    if target.segment_rules.is_host:
        return
    table = target.limits
    if table is None or not (table.rules or table.supported_kinds):
        raise PluginError(
            f"The target {target.device} declares no limit rules",
            found="no `limits_at`" if table is None else "an empty table",
            remedy="Name a LimitTable; a device that runs everything lists the layer kinds: supported_kinds=...",
        )


def _field_problems(target: Target) -> list[str]:
    """Fields of a record that are of another type."""
    from dryfit.network.data_types import DataType
    from dryfit.target.platform import Platform, SegmentRules

    found = []
    for name, kind in {"title": str, "simulated": str, "segment_rules": SegmentRules}.items():
        value = getattr(target, name)
        if not isinstance(value, kind):
            found.append(f"`{name}` is {value!r}, not a {kind.__name__}")
    for name, kind in {"platforms": Platform, "software_versions": tuple, "precisions": DataType}.items():
        value = getattr(target, name)
        if isinstance(value, str) or not isinstance(value, Iterable):
            found.append(f"`{name}` is {value!r}, not a sequence of {kind.__name__}")
            continue
        found += [f"`{name}` has {one!r}, which is not a {kind.__name__}" for one in value if not isinstance(one, kind)]
    default = target.default_precision
    if default is not None and not isinstance(default, DataType):
        found.append(f"`default_precision` is {default!r}, not a DataType")
    for name, value in attrs.asdict(target, recurse=False).items():
        if name.endswith("_at") and not isinstance(value, str | None):
            found.append(f"`{name}` is {value!r}, not the text `module:attribute`")
    return found
