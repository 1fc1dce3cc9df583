"""Packages that are installed for one test: a folder with modules and a `.dist-info`, as an installer leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

TARGET = """
    from dryfit.target.limits import LimitTable
    from dryfit.target.target import Platform, Target

    LIMITS = LimitTable({device!r}, [], supported_kinds=frozenset({{"activation"}}))
    TARGET = Target(
        device={device!r}, title="Acme", platforms=[Platform("one", "one", "Acme One")], limits_at="{module}:LIMITS"
    )
"""


def target_module(module: str, device: str = "ACME_NPU") -> dict[str, str]:
    """The text of a module with a sound target."""
    return {module: TARGET.format(module=module, device=device)}


def install(
    folder: Path,
    distribution: str,
    entry_points: Mapping[str, Mapping[str, str]] | str,
    modules: Mapping[str, str],
    version: str | None = "1.2",
) -> Path:
    """Lay a package into a folder.

    Args:
        folder: is to be put on the path.
        distribution: name of the package.
        entry_points: group to name to value; or the text of `entry_points.txt`.
        modules: dotted name to text.
        version: of the package; None leaves it out of the metadata.
    """
    for name, text in modules.items():
        path = folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    information = folder / f"{distribution.replace('-', '_')}-{version or 0}.dist-info"
    information.mkdir(parents=True)
    metadata = ["Metadata-Version: 2.1", f"Name: {distribution}", *([f"Version: {version}"] if version else [])]
    (information / "METADATA").write_text("\n".join(metadata) + "\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(_text(entry_points), encoding="utf-8")
    return folder


def _text(entry_points: Mapping[str, Mapping[str, str]] | str) -> str:
    if isinstance(entry_points, str):
        return dedent(entry_points)
    lines = []
    for group, entries in entry_points.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    return "\n".join(lines) + "\n"
