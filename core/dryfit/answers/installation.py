"""Check the dryfit installation: versions, the processor, the cache of compiled kernels, and installed plugins."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator, Sequence
from typing import ClassVar

from dryfit.answers.json_data import Count
from dryfit.answers.text import Answer, Block, Entries, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.target.machine_code import usable_processors
from dryfit.version import __version__

PACKAGES = ("numpy", "onnx", "numba", "llvmlite", "ml_dtypes", "protobuf", "click")
"""The dependencies whose versions matter for a bug report."""

EXTRAS = {"images": "pillow", "dask": "distributed", "testing": "pytest"}
"""Optional part of dryfit to the package that it needs."""


@frozen
class PackageVersion:
    """A package and its version.

    Attributes:
        name: name of the installed package.
        version: version of the package; "" if it is not installed.
    """

    name: str
    version: str


@frozen
class InstallationProblem:
    """A problem with the installation.

    Attributes:
        subject: subject of the problem: `packages`, `processor`, `cache` or the name of a plugin.
        text: description of the problem.
        remedy: how to fix the problem.
    """

    subject: str
    text: str
    remedy: str


@frozen(repr=False)
class InstallationAnswer(Answer):
    """The state of an installation.

    Attributes:
        version: version of dryfit.
        python: version, implementation and path of Python.
        system: operating system and architecture.
        packages: versions of the packages that dryfit requires.
        extras: optional features, by the package that each requires.
        tier: instruction set tier that kernels are compiled for; "" if it cannot be determined.
        tiers: all instruction set tiers of this machine, best first.
        processors: number of CPUs that this process may use.
        cache: folder of compiled kernels.
        kernels: number of kernel functions for this machine.
        kernels_compiled: number of kernel functions that are compiled and cached.
        plugins: number of installed plugins, including those of dryfit.
        packages_with_plugins: other packages that provide plugins.
        problems: problems found; empty for a healthy installation.
    """

    COMMAND: ClassVar[str] = "doctor"

    version: str
    python: str
    system: str
    packages: Sequence[PackageVersion]
    extras: Sequence[PackageVersion]
    tier: str
    tiers: Sequence[str]
    processors: Count
    cache: str
    kernels: Count
    kernels_compiled: Count
    plugins: Count
    packages_with_plugins: Sequence[str]
    problems: Sequence[InstallationProblem]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        count = len(self.problems)
        return f"{count} problem{'s' * (count > 1)} found" if count else "No problems found"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is nothing more to say
        """Return the versions, processor, cache and plugins, followed by the problems."""
        yield Line(f"dryfit {self.version}")
        extras = ", ".join(f"{one.name} {'yes' if one.version else 'no'}" for one in self.extras)
        others = ", ".join(self.packages_with_plugins)
        yield Table(
            "",
            ("part", "found"),
            [
                ("Python", self.python),
                ("system", self.system),
                ("packages", ", ".join(f"{one.name} {one.version or 'missing'}" for one in self.packages)),
                ("optional", extras),
                ("processor", f"{self.processors} CPUs, {self.tier or 'unknown'} (of {', '.join(self.tiers)})"),
                ("cache", self.cache),
                ("kernels", f"{self.kernels_compiled} of {self.kernels} compiled"),
                ("plugins", f"{self.plugins}, from dryfit{f', {others}' if others else ''}"),
            ],
        )
        yield Entries("Problems", [(one.subject, one.text, one.remedy) for one in self.problems])
        if self.kernels_compiled < self.kernels and not self.problems:
            yield Line(
                "Kernels are compiled when a build or run first needs them; `dryfit warmup` compiles all of them."
            )
        yield Line(f"{self.summary_line()}.")


def doctor() -> InstallationAnswer:
    """Check the installation. Plugins load in this process; `dryfit plugins doctor` tries each one in its own process.

    Example:
        >>> doctor().summary_line()
        'No problems found'
    """
    problems = [*_package_problems()]
    tiers: list[str] = []
    tier, kernels, compiled = "", 0, 0
    try:
        tier, tiers, kernels, compiled = _machine_code()
    except Exception as error:  # noqa: BLE001  whatever it is, it is the answer
        remedy = "Reinstall numba and llvmlite, and unset DRYFIT_CPU_TIER"
        problems.append(InstallationProblem("processor", f"kernels cannot be compiled: {error}", remedy))
    folder, found = _cache()
    plugins, others, failures = _plugins()
    return InstallationAnswer(
        version=__version__,
        python=f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}",
        system=f"{platform.platform()}",
        packages=[PackageVersion(name, installed_version(name)) for name in PACKAGES],
        extras=[PackageVersion(extra, installed_version(package)) for extra, package in EXTRAS.items()],
        tier=tier,
        tiers=tiers,
        processors=usable_processors(),
        cache=folder,
        kernels=kernels,
        kernels_compiled=compiled,
        plugins=plugins,
        packages_with_plugins=others,
        problems=[*problems, *found, *failures],
    )


def version_text() -> str:
    """Return the versions for a bug report, one per line."""
    packages = ", ".join(f"{name} {installed_version(name) or 'missing'}" for name in PACKAGES)
    python = f"Python {platform.python_version()} ({platform.python_implementation()}) on {platform.platform()}"
    return f"dryfit {__version__}\n{python}\n{packages}"


def installed_version(package: str) -> str:
    """Return the version of an installed package; "" if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _package_problems() -> Iterator[InstallationProblem]:
    for name in PACKAGES:
        if not installed_version(name):
            yield InstallationProblem(
                "packages", f"{name} is not installed", "Reinstall dryfit: pip install --force-reinstall dryfit"
            )


def _machine_code() -> tuple[str, list[str], int, int]:
    """Return the tier, all tiers, the number of kernel functions, and how many are cached."""
    from dryfit.plugins import registry

    machine_code = registry.host().machine_code
    if machine_code is None:
        return "", [], 0, 0
    code = machine_code(None)
    return code.tier, list(code.tiers), len(code.names), len(code.names) - len(code.missing())


def _cache() -> tuple[str, list[InstallationProblem]]:
    from dryfit.target.cache_folder import REMEDY, cache_folder, named_folder, refusal

    problem = refusal(named_folder())
    if not problem:
        return str(named_folder()), []
    text = f"{named_folder()} is not used: {problem}; kernels are kept in {cache_folder()}"
    return str(cache_folder()), [InstallationProblem("cache", text, REMEDY)]


def _plugins() -> tuple[int, list[str], list[InstallationProblem]]:
    """Return the number of plugins, other packages with plugins, and load failures."""
    from dryfit.plugins import registry
    from dryfit.plugins.installed_plugins import installed_plugins

    installed = [one for one in installed_plugins(registry) if one.state != "disabled"]
    registry.targets()
    others = sorted({f"{one.distribution} {one.version}" for one in installed if one.distribution != "dryfit"})
    broken = [
        InstallationProblem(f"{one.group} {one.name} of {one.distribution}", one.reason, "See `dryfit plugins doctor`")
        for one in installed
        if one.state in {"failed", "duplicate"}
    ]
    failed = [InstallationProblem("plugins", str(failure), failure.remedy) for failure in registry.failures()]
    return len(installed), others, [*broken, *failed]
