"""What the conformance kits have in common: one test for each declared thing, and no test that is quietly replaced.

A kit is a class of pytest tests. A third party subclasses it and says what it is about; all else follows. A subclass
that replaces a test of the kit has to state why, in `deviations`, and pytest's report tells it.
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
    """The parent of all kits.

    A kit writes tests whose names start with `test_`; an argument that `cases` lists is given one value after the
    other. A test collects what is wrong as sentences and hands them to `require_none`; where there is nothing to test
    because nothing is declared or supported, `declared` and `pytest.skip` tell so.

    Attributes:
        deviations: name of a test of the kit that this subclass replaces -> the reason. Each replaced test needs one,
            and each entry has to be of a replaced test.
        cases: argument of a test -> function from the kit's instance to the values that the test is run for. Without
            any value the test is run once, with None. A kit has those of its parents too.
    """

    deviations: ClassVar[Mapping[str, str]] = {}
    cases: ClassVar[Mapping[str, Callable[[Any], Cases]]] = {}

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Refuse a subclass that replaces tests without a reason.

        Raises:
            PluginError: a test is replaced and `deviations` has no reason, or has one for a test that is not.
        """
        super().__init_subclass__(**arguments)
        problems = deviation_problems(cls)
        if problems:
            raise PluginError(
                "; ".join(problems),
                where=f"conformance kit {cls.__name__}",
                remedy="Correct the attributes of the kit's class",
            )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each case of an argument."""
        for name in metafunc.fixturenames:
            values = self.cases_for(name)
            if values:
                metafunc.parametrize(name, [pytest.param(value, id=label) for label, value in values])

    def cases_for(self, argument: str) -> Cases:
        """The values that a test is run for; one, None, where there is nothing to test; none for another fixture."""
        functions = _merged(type(self), "cases")
        return (functions[argument](self) or [("none", None)]) if argument in functions else []


def deviation_problems(kit: type[ConformanceKit]) -> list[str]:
    """What is wrong between the tests that a kit replaces and the reasons that it states."""
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
    """Tests that a class takes from elsewhere than from the kits it builds on, sorted.

    A class beside the kit in the list of parents can replace a test as well as the class itself.
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
    """Test -> reason, of a class and the classes that it builds on."""
    return _merged(kit, "deviations")


def _merged(kit: type[ConformanceKit], attribute: str) -> dict[str, Any]:
    """A mapping that a class and its parents each have a part of; the class's own entries win."""
    found: dict[str, Any] = {}
    for parent in reversed(kit.__mro__):
        found.update(vars(parent).get(attribute, {}))
    return found


def require_none(problems: Sequence[str]) -> None:
    """Fail with all problems at once; nothing happens where there is none."""
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def declared(value: Any, what: str) -> Any:
    """The value; where it is None the test is skipped, with `what` the target or plugin does not declare."""
    if value is None:
        pytest.skip(f"nothing to test: there is no {what}")
    return value
