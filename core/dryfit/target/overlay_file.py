"""Overlays as files: TOML that people read, write and share. What a file says is checked before anything uses it.

    schema = 1
    name = "my-board"
    platform = "orin-nx-16"
    software = "10.3"
    author = "Ada, Acme Robotics"
    made = 2026-11-23
    source = "61 builds and 40 latencies of a developer kit"

    [rules."dla.pooling.ranges"]
    enabled = false
    layers = 3

    [rules."dla.convolution.kernel"]
    limits = { high = 31 }
    layers = 4
    reason = "31 was built, 32 was refused"

    [cost.dla]
    bytes_per_second = { value = 41.2e9, error = 0.04, measurements = 40 }
    "rates.FP16.macs_per_cycle" = { value = 171, error = 0.02, measurements = 40 }

    [confirmed]
    "dla.convolution.stride" = { layers = 12 }

The layout of a written file is fixed, so that the same overlay gives the same bytes.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

from dryfit.atomic_file import write_atomically
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.target.overlays import (
    SCHEMA,
    Confirmation,
    FittedParameter,
    LimitValue,
    Overlay,
    RuleChange,
    overlay_text,
    require_agreement,
)

LARGEST_FILE = 1 << 20
"""Bytes. Our choice: all rules of all targets take less."""

_REMEDY = "Fix the file; docs/reference/overlays.md has all fields"


def read_overlay(path: str | os.PathLike[str]) -> Overlay:
    """Read an overlay's file.

    Raises:
        ConfigError: The file cannot be read, is no TOML, or a value has the wrong form.
        UnknownNameError: A field does not exist; the message names the closest one.
    """
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(
            "The overlay cannot be read", where=name, found=error, remedy="Check the path and the permissions"
        ) from error
    return overlay_from_bytes(data, name)


def overlay_from_bytes(data: bytes, origin: str) -> Overlay:
    """Return the overlay that a file's bytes say.

    Args:
        data: UTF-8.
        origin: file or package that they are from, for messages.

    Raises:
        ConfigError, UnknownNameError: As `read_overlay`.
    """
    import tomllib  # every command has this module, and few read an overlay

    if len(data) > LARGEST_FILE:
        raise ConfigError(
            "The file is too large for an overlay",
            where=origin,
            found=f"more than {LARGEST_FILE >> 20} MiB",
            remedy="Pass an overlay that `dryfit board learn` wrote",
        )
    try:
        found = tomllib.loads(data.decode())
    # Both errors of its own, and that of an integer with thousands of digits, are ValueErrors.
    except (ValueError, RecursionError) as error:
        raise ConfigError("The overlay is not valid TOML", where=origin, found=error, remedy=_REMEDY) from error
    return _Reader(origin).overlay(found)


class _Reader:
    """Makes an overlay of a TOML document, and says where in the document something is wrong."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def overlay(self, data: Mapping[str, Any]) -> Overlay:
        if data.get("schema") != SCHEMA:
            self._wrong("schema", data.get("schema", "none"), str(SCHEMA))
        self._known("", data, _FIELDS)
        software = self._text(data, "software", "")
        if software and not (software.isascii() and all(part.isdecimal() for part in software.split("."))):
            self._wrong("software", software, 'a version such as "10.3"')
        made = data.get("made")
        if made is not None and (not isinstance(made, dt.date) or isinstance(made, dt.datetime)):
            self._wrong("made", made, "a date such as 2026-11-23")
        found = Overlay(
            name=self._text(data, "name"),
            platform=self._text(data, "platform"),
            software=software,
            author=self._text(data, "author", ""),
            made=made,
            source=self._text(data, "source", ""),
            rules={
                rule_id: self._rule(f'rules."{rule_id}"', rule)
                for rule_id, rule in self._table(data.get("rules", {}), "rules").items()
            },
            cost={
                device: {
                    name: self._parameter(f'cost.{device}."{name}"', one)
                    for name, one in self._table(parameters, f"cost.{device}").items()
                }
                for device, parameters in self._table(data.get("cost", {}), "cost").items()
            },
            confirmed={
                rule_id: self._confirmation(f'confirmed."{rule_id}"', one)
                for rule_id, one in self._table(data.get("confirmed", {}), "confirmed").items()
            },
            origin=self._origin,
        )
        require_agreement([found])
        return found

    def _rule(self, where: str, data: Any) -> RuleChange:
        table = self._table(data, where)
        self._known(where, table, ("enabled", "limits", "layers", "reason"))
        enabled = table.get("enabled", True)
        if not isinstance(enabled, bool):
            self._wrong(f"{where}.enabled", enabled, "true or false")
        limits = {
            name: self._limit(f"{where}.limits.{name}", value)
            for name, value in self._table(table.get("limits", {}), f"{where}.limits").items()
        }
        if enabled is bool(not limits):
            self._wrong(
                where,
                "a change that changes nothing" if enabled else "limits of a rule that is off",
                "enabled = false, or limits",
            )
        return RuleChange(enabled, limits, self._count(table, where, "layers"), self._text(table, "reason", "", where))

    def _limit(self, where: str, value: Any) -> LimitValue:
        several = value if isinstance(value, list) else [value]
        if not several or not all(isinstance(one, str) or _is_number(one) for one in several):
            self._wrong(where, value, "a finite number, a string, true, false, or a list of these")
        return tuple(several) if isinstance(value, list) else value  # type: ignore[no-any-return]

    def _parameter(self, where: str, data: Any) -> FittedParameter:
        table = self._table(data, where)
        self._known(where, table, ("value", "error", "measurements"))
        value = self._number(table, where, "value")
        error = None if "error" not in table else self._number(table, where, "error")
        return FittedParameter(value, error, self._count(table, where, "measurements"))

    def _confirmation(self, where: str, data: Any) -> Confirmation:
        table = self._table(data, where)
        self._known(where, table, ("layers",))
        return Confirmation(self._count(table, where, "layers"))

    def _table(self, data: Any, where: str) -> Mapping[str, Any]:
        if not isinstance(data, dict):
            self._wrong(where, data, "a table")
        return data  # type: ignore[no-any-return]

    def _text(self, data: Mapping[str, Any], key: str, default: str | None = None, where: str = "") -> str:
        found = data.get(key, default)
        if not isinstance(found, str) or (default is None and not found) or not found.isprintable():
            self._wrong(f"{where}.{key}".lstrip("."), found if key in data else "none", "one line of text")
        return found  # type: ignore[no-any-return]

    def _number(self, data: Mapping[str, Any], where: str, key: str) -> float:
        found = data.get(key)
        if isinstance(found, bool) or not _is_number(found) or found < 0:
            self._wrong(f"{where}.{key}", found, "a finite number, at least 0")
        return found

    def _count(self, data: Mapping[str, Any], where: str, key: str) -> int:
        found = data.get(key, 0)
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            self._wrong(f"{where}.{key}", found, "a whole number, at least 0")
        return found  # type: ignore[no-any-return]

    def _known(self, where: str, table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        for key in table:
            if key not in allowed:
                raise UnknownNameError(f"field of {where}" if where else "field", key, allowed, where=self._origin)

    def _wrong(self, field: str, found: object, allowed: str) -> NoReturn:
        raise ConfigError(
            "The overlay field has an invalid type",
            where=f"{self._origin}, {field}",
            found=repr(found) if isinstance(found, str) and found != "none" else found,
            allowed=allowed,
            remedy=_REMEDY,
        )


def _is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number that a float can hold; True and False are 1 and 0."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


_FIELDS = ("schema", "name", "platform", "software", "author", "made", "source", "rules", "cost", "confirmed")


def write_overlay(overlay: Overlay, path: str | os.PathLike[str]) -> None:
    """Write an overlay's file, as a whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    write_atomically(path, [overlay_text(overlay).encode()])
