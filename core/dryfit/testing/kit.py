"""The common base of the conformance kits: one test per declared object, and no test that is replaced silently.

A kit is a class of pytest tests. A third party subclasses it and sets the object under test. A subclass that replaces a
test of the kit must give the reason in `deviations`, which is shown in pytest's report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from dryfit.errors import PluginError

Cases = Sequence[tuple[str, Any]]
"""(what a test is called, what it is given)."""

_GUARDED = "pytest_generate_tests"
_MAPPINGS = {
    "deviations": "test of the kit that the class replaces -> why",
    "cases": "argument of a test -> function that gives its values",
}


class ConformanceKit:
    """The base class of all kits.

    A kit defines tests whose names start with `test_`; an argument listed in `cases` is parametrized with its values. A
    test collects problems as sentences and passes them to `require_none`; if there is nothing to test because nothing
    is declared or supported, it is skipped with `declared` or `pytest.skip`.

    Attributes:
        deviations: name of a test that this subclass replaces -> the reason. Every replaced test requires an entry, and
            every entry must name a replaced test.
        cases: argument of a test -> function of the kit instance that returns the values to test. Without values, the
            test runs once, with None. Cases of base classes are inherited.
    """

    deviations: ClassVar[Mapping[str, str]] = {}
    cases: ClassVar[Mapping[str, Callable[[Any], Cases]]] = {}

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Reject a subclass that replaces tests without a reason.

        Raises:
            PluginError: A test is replaced without a reason in `deviations`, or `deviations` names a test that is not
                replaced.
        """
        super().__init_subclass__(**arguments)
        problems = deviation_problems(cls)
        if problems:
            raise PluginError(
                "; ".join(problems),
                where=f"conformance kit {cls.__name__}",
                remedy="Fix the attributes of the kit's class",
            )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Generate one test per case of an argument."""
        for name in metafunc.fixturenames:
            values = self.cases_for(name)
            if values:
                metafunc.parametrize(name, [pytest.param(value, id=label) for label, value in values])

    def cases_for(self, argument: str) -> Cases:
        """Return the values of a test; [None] if there is nothing to test, empty for another fixture."""
        functions = _merged(type(self), "cases")
        return (functions[argument](self) or [("none", None)]) if argument in functions else []


def deviation_problems(kit: type[ConformanceKit]) -> list[str]:
    """Return the mismatches between the replaced tests and the stated reasons."""
    for name, meaning in _MAPPINGS.items():
        if not isinstance(vars(kit).get(name, {}), Mapping):
            return [f"`{name}` is the kit's own attribute, a mapping: {meaning}"]
    stated = vars(kit).get("deviations", {})
    replaced = replaced_tests(kit)
    unknown = [name for name in stated if name not in replaced]
    silent = [name for name in replaced if not str(stated.get(name, "")).strip()]
    return [
        *(f"{name} replaces a test of the kit: state why in `deviations[{name!r}]`" for name in silent),
        *(f"`deviations[{name!r}]` is left over: the class replaces no such test" for name in unknown),
    ]


def replaced_tests(kit: type[ConformanceKit]) -> list[str]:
    """Return the tests that a class does not inherit from the kits it builds on, sorted.

    Another base class of the class can replace a test, as can the class itself.
    """
    parents = [parent for parent in kit.__mro__[1:] if issubclass(parent, ConformanceKit)]
    originals: dict[str, list[Any]] = {}
    for parent in parents:
        for name, value in vars(parent).items():
            if name.startswith("test_") or name == _GUARDED:
                originals.setdefault(name, []).append(value)
    return sorted(name for name, values in originals.items() if _attribute(kit, name) not in values)


def _attribute(kit: type[ConformanceKit], name: str) -> Any:
    """What a class has by a name, without binding it."""
    return next(vars(parent)[name] for parent in kit.__mro__ if name in vars(parent))


def all_deviations(kit: type[ConformanceKit]) -> dict[str, str]:
    """Return test -> reason for a class and its base classes."""
    return _merged(kit, "deviations")


def _merged(kit: type[ConformanceKit], attribute: str) -> dict[str, Any]:
    """A mapping that a class and its parents each have a part of; the class's own entries win."""
    found: dict[str, Any] = {}
    for parent in reversed(kit.__mro__):
        found.update(vars(parent).get(attribute, {}))
    return found


def require_none(problems: Sequence[str]) -> None:
    """Fail with all problems at once; do nothing if there are none."""
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def declared(value: Any, what: str) -> Any:
    """Return the value; if it is None, skip the test with `what` is not declared."""
    if value is None:
        pytest.skip(f"nothing to test: there is no {what}")
    return value
