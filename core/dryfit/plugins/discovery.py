"""What installed packages say that they bring, and what of it the user has switched off. Nothing of theirs is imported.

The standard library's reader stops at the first malformed line of any package. This one passes a malformed line on as
an entry point that cannot be loaded, so that the package is named and the others are found.

Two environment variables switch plugins off. They hold names of entry points or of distributions, separated by commas:

* `DRYFIT_DISABLE_PLUGINS` switches these off; `*` stands for everything that does not come with dryfit.
* `DRYFIT_LOAD_PLUGINS`, where it is set, leaves only these of what does not come with dryfit; empty, none.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Hashable, Iterable, Iterator
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Any

import attrs

from dryfit.attrs_classes import frozen

API_LEVEL = 1
"""The level of the plugin interface that this dryfit has.

It grows when something is added that a plugin may rely on. A plugin that needs it states the level in its module or top
package as `DRYFIT_API_LEVEL`; an older dryfit then says what is missing instead of failing somewhere.
"""

TARGETS = "dryfit.targets"
LAYERS = "dryfit.layers"
IMPORTERS = "dryfit.importers"
ONNX_OPERATORS = "dryfit.onnx_operators"
PASSES = "dryfit.passes"
CALIBRATORS = "dryfit.calibrators"
QUANTIZE_METHODS = "dryfit.quantize_methods"
OVERLAYS = "dryfit.overlays"
METRICS = "dryfit.metrics"
HOOKS = "dryfit.hooks"

GROUPS = {
    TARGETS: "the device's name in any case, `-` for `_`: `acme-npu` is the device `ACME_NPU`; names a `Target`",
    LAYERS: "a layer plugin's name, `Name` or `namespace::Name`; names a `LayerPlugin`",
    IMPORTERS: "the name of a model format, such as `onnx`; names a `ModelImporter`",
    ONNX_OPERATORS: "an ONNX operator, `domain::OpType`; names an `OnnxOperator`",
    PASSES: "any name; names a `PassContribution`",
    CALIBRATORS: "the calibrator's name; names a `Calibrator`",
    QUANTIZE_METHODS: "the method's name",
    OVERLAYS: "any name; names the file of an overlay in its package: `acme_boards:orin_nx.toml`. It is read, and the "
    "package is not imported",
    METRICS: "the metric's name; names a `Metric`",
    HOOKS: "any name; names a module with functions that are marked `@dryfit.hookimpl`",
}
"""Every entry-point group to what its names and values mean."""

OWN_DISTRIBUTION = "dryfit"

DISABLE_VARIABLE = "DRYFIT_DISABLE_PLUGINS"
LOAD_VARIABLE = "DRYFIT_LOAD_PLUGINS"
CHOOSE_ONE = f"Uninstall one, or name its package in the environment variable {DISABLE_VARIABLE}"
"""What to do where two packages bring one name."""

_VALUE = re.compile(r"(?P<module>[\w.]+)\s*(:\s*[\w.]+\s*)?(\[.*\]\s*)?$")


@frozen(order=True)
class PluginOwner:
    """Which entry point of which package something comes from.

    Attributes:
        distribution: normalised name of the package; "" where the entry point does not tell.
        version: the package's; "" where its metadata has none.
        group, name: the entry point.
    """

    distribution: str
    version: str
    group: str
    name: str

    @property
    def package(self) -> str:
        """`distribution version`."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def is_foreign(self) -> bool:
        """Whether it does not come with dryfit."""
        return self.distribution != OWN_DISTRIBUTION

    def __str__(self) -> str:
        """`name version (distribution)`."""
        package = f"({self.distribution})" if self.distribution else ""
        return " ".join(filter(None, (self.name, self.version, package)))


def owner_of(entry: EntryPoint) -> PluginOwner:
    """Which package brings an entry point."""
    return PluginOwner(*_name_and_version(entry.dist), entry.group, entry.name)


def normalised(distribution: str) -> str:
    """The name of a distribution as package indexes compare it.

    Source: Python packaging user guide, Names and normalization.
    """
    return re.sub(r"[-_.]+", "-", distribution).lower()


def module_of(value: str) -> str | None:
    """The module that an entry point's value names; None where the value is malformed."""
    found = _VALUE.match(value)
    return found["module"] if found else None


def installed_entry_points() -> list[EntryPoint]:
    """Those of dryfit's groups in all installed packages. Of a package that is on the path twice the first counts."""
    packages: dict[str, list[EntryPoint]] = {}
    for distribution in distributions():
        text = _entry_points_text(distribution)
        if "[dryfit." in text:
            name, _ = _name_and_version(distribution)
            packages.setdefault(name, [*entry_points_in(text, distribution)])
    return [entry for entries in packages.values() for entry in entries if entry.group.startswith("dryfit.")]


def _entry_points_text(distribution: Distribution) -> str:
    """What a package declares; "" where it declares nothing. What is no UTF-8 becomes malformed lines."""
    try:
        return distribution.read_text("entry_points.txt") or ""
    except UnicodeDecodeError as error:
        return error.object.decode(errors="replace")


class DeclaredEntryPoint(EntryPoint):
    """An entry point as a package declares it, whose value may be malformed: Python 3.15's own refuses to be made."""

    def __init__(self, name: str, value: str, group: str, dist: Distribution) -> None:
        vars(self).update(name=name, value=value, group=group, dist=dist)  # immutable, as the standard library's are


def entry_points_in(text: str, distribution: Distribution) -> Iterator[EntryPoint]:
    """The entry points that a package's `entry_points.txt` declares; a line without `=` is one with an empty value."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[] ")
        elif line and not line.startswith("#"):
            name, _, value = map(str.strip, line.partition("="))
            yield DeclaredEntryPoint(name, value, group, distribution)


def _name_and_version(distribution: Any) -> tuple[str, str]:
    """The normalised name and the version of a package; "" for what its metadata does not say."""
    if distribution is None:
        return "", ""
    return _read_once(distribution) if isinstance(distribution, Hashable) else _read(distribution)


@functools.lru_cache(maxsize=1024)
def _read_once(distribution: Hashable) -> tuple[str, str]:
    """The same, kept: the standard library reads and parses the metadata at each question."""
    return _read(distribution)


def _read(distribution: Any) -> tuple[str, str]:
    name = _stated(distribution, "name")
    if not name:
        # A package without metadata still has a folder: acme_npu-1.0.dist-info.
        name = str(getattr(distribution, "_path", "")).replace("\\", "/").rpartition("/")[2].partition("-")[0]
    return normalised(name), _stated(distribution, "version")


def _stated(distribution: Any, what: str) -> str:
    try:
        return str(getattr(distribution, what) or "")
    except Exception:  # noqa: BLE001  metadata that is missing or damaged raises differently in each Python version
        return ""


def by_name(entries: Iterable[EntryPoint]) -> list[EntryPoint]:
    """Entry points in the one order that does not depend on the environment: by name, distribution and value."""
    found = {(entry.name, owner_of(entry), entry.value): entry for entry in entries}
    return [entry for _, entry in sorted(found.items(), key=lambda item: item[0])]


def switching_off(owner: PluginOwner) -> str:
    """The setting that switches a plugin off, and none of dryfit's own that has the same name."""
    by_package = owner.distribution and owner.is_foreign
    return f"{DISABLE_VARIABLE}={owner.distribution if by_package else owner.name}"


@frozen
class PluginSwitches:
    """What the two variables say.

    Attributes:
        disabled: words of `DRYFIT_DISABLE_PLUGINS`.
        selected: words of `DRYFIT_LOAD_PLUGINS`; None where it is not set.
    """

    disabled: frozenset[str] = attrs.field(default=frozenset())
    selected: frozenset[str] | None = None

    @classmethod
    def from_texts(cls, disabled: str | None = None, selected: str | None = None) -> PluginSwitches:
        """Switches from the variables' texts; None for a text takes the environment's."""
        disabled = os.environ.get(DISABLE_VARIABLE, "") if disabled is None else disabled
        selected = os.environ.get(LOAD_VARIABLE) if selected is None else selected
        return cls(_words(disabled), None if selected is None else _words(selected))

    def reason(self, owner: PluginOwner) -> str:
        """By what a plugin is switched off; "" where it is on."""
        names = {normalised(owner.name), normalised(owner.distribution)}
        off = sorted(names & self.disabled)
        if off:
            return f"{DISABLE_VARIABLE}={off[0]}"
        if not owner.is_foreign:
            return ""
        if "*" in self.disabled:
            return f"--no-plugins or {DISABLE_VARIABLE}=*"
        if self.selected is not None and not names & self.selected:
            return f"{LOAD_VARIABLE}={','.join(sorted(self.selected))}"
        return ""

    def idle_words(self, owners: Iterable[PluginOwner]) -> dict[str, list[str]]:
        """For each variable its words that name none of these plugins and packages: most likely misspelled."""
        known = {normalised(name) for owner in owners for name in (owner.name, owner.distribution)} | {"*"}
        words = {DISABLE_VARIABLE: self.disabled, LOAD_VARIABLE: self.selected or frozenset()}
        return {variable: sorted(said - known) for variable, said in words.items() if said - known}


def _words(text: str) -> frozenset[str]:
    return frozenset(normalised(word.strip()) for word in text.split(",")) - {""}
