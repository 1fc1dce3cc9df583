"""Names of tensor formats, and the values accepted where formats are allowed.

The memory layout of a format depends on the device and is described in `dryfit.target.formats`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from dryfit.errors import NetworkError, UnknownNameError
from dryfit.network.installed_packages import installed_packages


class TensorFormat(enum.IntEnum):
    """Memory layout of a tensor, with TensorRT's names and numbers. A mask has the bit `1 << int(format)`.

    Formats of other devices have no number and are identified by name.
    """

    LINEAR = 0
    CHW2 = 1
    HWC8 = 2
    CHW4 = 3
    CHW16 = 4
    CHW32 = 5
    DHWC8 = 6
    CDHW32 = 7
    HWC = 8
    DLA_LINEAR = 9
    DLA_HWC4 = 10
    HWC16 = 11
    DHWC = 12

    def __or__(self, other: object) -> int:
        """Not supported: the numbers are not bits, so their union would be the mask of other formats."""
        raise TypeError(f"A mask is made of bits: write 1 << int(TensorFormat.{self.name}) | ...")


AllowedFormats = int | str | TensorFormat | Iterable["str | TensorFormat"]
"""One format, several, or a bit mask."""


def format_names(allowed: AllowedFormats, where: str) -> frozenset[str]:
    """Return the names of the formats that a user allows.

    Args:
        allowed: a `TensorFormat` or a name, a collection of these, or a bit mask, `1 << int(format)` each.
        where: the tensor, used in error messages.

    Raises:
        NetworkError: The value is not one of these, or allows no format.
        UnknownNameError: A name is not the name of a format.
    """
    if isinstance(allowed, int) and not isinstance(allowed, (bool, enum.Enum)):
        names = _of_mask(allowed)
    elif isinstance(allowed, (str, TensorFormat)):
        names = [_name(allowed)]
    else:
        is_collection = isinstance(allowed, Iterable) and not isinstance(allowed, (bytes, dict))
        names = [_name(one) for one in allowed] if is_collection else [None]  # type: ignore[union-attr]
    if not names or None in names:
        raise NetworkError(
            "Not a tensor format or a set of them",
            where=where,
            found=repr(allowed),
            allowed="a TensorFormat or a format's name, a collection of these, a bit mask such as "
            "1 << int(TensorFormat.CHW16), or None for any format",
            remedy="Use one of these forms",
        )
    found = frozenset(map(str, names))
    unknown = sorted(found - TensorFormat.__members__.keys())
    known = {*TensorFormat.__members__, *installed_packages().format_names()} if unknown else found
    for name in unknown:
        if name not in known:
            raise UnknownNameError("tensor format", name, known, where=where)
    return found


def _name(one: Any) -> str | None:
    """A format's name; None for what is no format. A number alone is none, since it could be a mask."""
    if isinstance(one, TensorFormat):
        return one.name
    return str(one) if isinstance(one, str) and one else None


def _of_mask(mask: int) -> list[str | None]:
    is_mask = 0 < mask < 1 << len(TensorFormat)
    return [one.name for one in TensorFormat if mask >> one & 1] if is_mask else [None]
