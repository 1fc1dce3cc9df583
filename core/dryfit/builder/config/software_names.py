"""Names of software releases that people know, such as JetPack 6.1, as the TensorRT versions that rules speak of.

Source: release notes of JetPack and DRIVE OS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dryfit.errors import ConfigError, UnknownNameError

RELEASES: Mapping[str, Mapping[str, str]] = {
    "jetpack": {
        "4.6": "8.2",
        "5.0": "8.4",
        "5.1": "8.5.2",
        "6.0": "8.6.2",
        "6.1": "10.3",
        "6.2": "10.3",
    },
    "drive-os": {
        "6.0.6.0": "8.5.10",
        "6.0.7.0": "8.6.10",
        "6.0.8.0": "8.6.11",
        "6.0.8.1": "8.6.11",
        "6.0.9.0": "8.6.12",
        "6.0.9.1": "8.6.12",
    },
}
"""Product to its releases and the TensorRT version of each."""
_TENSORRT = frozenset({"tensorrt", "trt"})
_NAME = re.compile(r"(?P<product>[a-z]+(?:[-_ ][a-z]+)?)[-_ ]?(?P<release>\d+(?:\.\d+)*)")
_NUMBERS = re.compile(r"\d+(\.\d+)*")


def software_version(name: object, where: str) -> str:
    """The TensorRT version of a name: `10.3` of itself, `TensorRT-10.3`, `jetpack-6.1` or `jetpack6`.

    A release that is named by its first numbers is the newest of those; an update of a release is that release.

    Raises:
        ConfigError: this is no version, and no name of one.
        UnknownNameError: the product has no such release.
    """
    text = name.strip().lower() if isinstance(name, str) else ""
    if _NUMBERS.fullmatch(text):
        return text
    match = _NAME.fullmatch(text)
    product = match["product"].replace(" ", "-").replace("_", "-") if match else ""
    product = {"driveos": "drive-os", "jp": "jetpack"}.get(product, product)
    if match is None or product not in RELEASES.keys() | _TENSORRT:
        raise ConfigError(
            "A software version is numbers with dots, or the name of a release",
            where=where,
            found=repr(name),
            allowed=f"such as 10.3, TensorRT-10.3, {', '.join(_known('jetpack'))}, {', '.join(_known('drive-os'))}",
        )
    release = match["release"]
    if product in _TENSORRT:
        return release
    # `6` means the newest 6.x, and `5.1.2` is an update of 5.1.
    fitting = [known for known in RELEASES[product] if _begins(known, release) or _begins(release, known)]
    if not fitting:
        raise UnknownNameError("release", text, _known(product), where=where)
    return RELEASES[product][fitting[-1]]


def _begins(longer: str, shorter: str) -> bool:
    return f"{longer}.".startswith(f"{shorter}.")


def _known(product: str) -> list[str]:
    return [f"{product}-{release}" for release in RELEASES[product]]
