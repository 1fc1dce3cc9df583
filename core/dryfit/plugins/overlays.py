"""Overlays of installed packages, and whether an overlay speaks of what is installed.

An entry point in the group `dryfit.overlays` names a file of a package: `acme_boards:orin_nx.toml`. The file is read;
the package is not imported, so that nothing of it runs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path

from dryfit.errors import DryfitError, PluginError, UnknownNameError
from dryfit.plugins import registry
from dryfit.plugins.discovery import OVERLAYS, owner_of
from dryfit.plugins.loading import described
from dryfit.target.overlay_file import read_overlay
from dryfit.target.overlays import Overlay, require_known


def installed_overlays() -> tuple[Overlay, ...]:
    """The overlays of installed packages, sorted by name and package. What is broken is recorded and left out."""
    if OVERLAYS not in registry.answers:
        found = []
        for entry in registry.entries(OVERLAYS):
            try:
                overlay = read_overlay(_place(entry))
                require_known_overlays([overlay])
                found.append(overlay)
            except DryfitError as error:
                message, remedy = described(error)
                registry.fail(entry, message, remedy=remedy)
        registry.answers[OVERLAYS] = tuple(found)
    overlays: tuple[Overlay, ...] = registry.answers[OVERLAYS]
    return overlays


def _place(entry: EntryPoint) -> Path:
    """The file that an entry point names.

    Raises:
        PluginError: The package is not there, or the entry point does not name a file.
    """
    module, _, file = (part.strip() for part in entry.value.partition(":"))
    top, *inner = module.split(".")
    # Only the top package is looked for: to find an inner one, Python would import those around it.
    spec = importlib.util.find_spec(top) if top.isidentifier() else None
    folders = () if spec is None else spec.submodule_search_locations or ()
    paths = [Path(folder, *inner, file) for folder in folders] if file else []
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        raise PluginError(
            "The entry point must name a file of its package",
            where=f"{entry.name} in {OVERLAYS} of {owner_of(entry).package}",
            found=entry.value,
            allowed="package:file.toml",
            remedy="Include the file in the package, beside its modules",
        )
    return found


def require_known_overlays(overlays: Iterable[Overlay]) -> None:
    """Reject overlays that speak of what no installed target has.

    Raises:
        UnknownNameError: A device, platform, rule, limit or cost parameter does not exist.
        ConfigError: A value does not fit.
        PluginError: The package of a device is broken.
    """
    for overlay in overlays:
        for device in sorted(overlay.devices):
            try:
                target = registry.target(device)
                target.platform(overlay.platform)
            except UnknownNameError as error:
                what = f"{device} platform" if device in registry.device_names() else "device"
                raise UnknownNameError(what, error.name, error.known, where=overlay.where) from error
            require_known(overlay, target)
