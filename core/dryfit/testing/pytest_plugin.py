"""The pytest plugin of dryfit: additional report lines for conformance kits, and a fixture.

Every pytest run in an environment with dryfit loads it, so it imports nothing heavy and prints nothing without a kit.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

import dryfit.testing

if TYPE_CHECKING:
    from dryfit.testing.kit import ConformanceKit

DEVIATION = "dryfit deviation"
"""Key of the property by which a test that a subclass replaced tells so, across worker processes too."""


def _kit_modules() -> Iterator[str]:
    """The modules and packages of the kits that have not been imported yet; pytest includes what is inside them."""
    for module in pkgutil.iter_modules(dryfit.testing.__path__, f"{dryfit.testing.__name__}."):
        if module.name not in sys.modules:
            yield module.name


# A failing assert in a kit tells its values, as one in a test does, only where pytest is told before the import.
pytest.register_assert_rewrite(*_kit_modules())


def _kit_of(item: pytest.Item) -> type[ConformanceKit] | None:
    """The kit's subclass that a test belongs to; None where it is no test of a kit."""
    kit = sys.modules.get("dryfit.testing.kit")
    cls = getattr(item, "cls", None)
    is_kit = kit is not None and isinstance(cls, type) and issubclass(cls, kit.ConformanceKit)
    return cls if is_kit else None


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark the tests that subclasses replaced, with their reasons."""
    for item in items:
        kit = _kit_of(item)
        if kit is None:
            continue
        from dryfit.testing.kit import all_deviations

        name = getattr(item, "originalname", item.name)
        reason = all_deviations(kit).get(name)
        if reason is not None:
            item.user_properties.append((DEVIATION, f"{kit.__name__}.{name}: {reason}"))


def pytest_report_collectionfinish(items: Sequence[pytest.Item]) -> list[str]:
    """Report the plugins with which the kits run."""
    if not any(_kit_of(item) for item in items):
        return []
    from dryfit.plugins import registry

    return [f"dryfit plugins: {', '.join(registry.active_plugins())}"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Report the kit tests that subclasses replaced, with the reasons."""
    found = {
        str(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        for key, value in getattr(report, "user_properties", ())
        if key == DEVIATION
    }
    if found:
        terminalreporter.section("deviations from the conformance kits")
        for line in sorted(found):
            terminalreporter.write_line(line)


@pytest.fixture
def only_dryfit_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use dryfit's own plugins only, so that a test does not depend on the environment's other packages."""
    from dryfit.plugins import registry
    from dryfit.plugins.discovery import DISABLE_VARIABLE
    from dryfit.plugins.plugin_registry import PluginRegistry

    monkeypatch.setenv(DISABLE_VARIABLE, "*")
    monkeypatch.setattr(registry, "__dict__", vars(PluginRegistry()))
