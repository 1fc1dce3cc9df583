"""Each error that refuses says what to do, what was found and what is allowed.

The calls that make an error are found in the source, so that one without a remedy is noticed before anyone meets it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import pytest
from tests.repository.source_trees import nodes_of

from dryfit import errors
from dryfit.errors import DryfitError, MissingAttributeError, UnknownNameError

SOURCES = ("core", "targets", "plugins", "frontends")

SUPPLY_THEIR_OWN = {
    "UnknownNameError": "the closest name, or the names that exist",
    "MissingAttributeError": "as UnknownNameError",
    "UnknownSettingError": "as UnknownNameError",
    "ModelRefusedError": "lists errors of nodes, each with its remedy",
    "KernelRequiredError": "says what to do instead of running a kernel",
    "ParserError": "is a record of the parser, made from an error with a remedy",
}
"""Errors whose constructors say what to do."""

NOT_FOR_USERS = {
    "CannotLinkError": "is caught: LLVM's linker takes over, and nothing is refused",
    "UnknownAttributeError": "an AttributeError that shows the facts of a MissingAttributeError",
}
"""Errors that no user gets to see as they are."""

PROBLEM_METHODS = {"problem": "message"}
"""Methods that make an error, with their first parameter; others of the name have another one."""

FOUND_OR_MESSAGE = {
    "ConfigError",
    "PluginError",
    "EngineFileError",
    "ExecutionError",
}
"""Errors about a given value: `found`, `where` or a value in the message says which it was."""


STATES_WHAT_IS_ALLOWED = re.compile(
    r"\b(must|requires?|required|needs?|only|can be|at least|at most|each named once|takes? (no|an?|neither)|expected|"
    r"is that of|are those of|(is|are) not (an?|the|valid|is)|are computed on)\b",
    re.IGNORECASE,
)
"""A message with such a word says itself what is allowed."""

NOTHING_IS_ALLOWED = {
    r"cannot be|cannot (read|load|run|build|pack)|could not|\bfail(s|ed)?\b|refuses|reject": "what was found is why",
    r"damaged|corrupt|malformed|inconsistent|contradict|impossible": "the data contradict themselves",
    r"do(es)? not (support|match|allow|have)|not supported|unsupported|different": "what was found are the "
    "differences, or the reasons of what refuses, each with what it allows",
    r"missing|unknown|not installed|\bno\b|not set|is disabled": "something is not there",
    r"already|more than one|^Two |still used|duplicate": "any other is allowed",
    r"canceled|stopped|\bended\b|lost|memory|Assertion": "the run ended, or met a limit of the machine",
    r"too (deep|large|many|short)|no meaning|empty axis": "any number within the input is allowed",
}
"""Patterns of messages about something that is not one value among allowed ones, to why nothing can be listed."""


@attrs.frozen
class ErrorCall:
    """One call that makes an error.

    Attributes:
        path, line: where it is.
        name: of the class or method.
        keywords: names of its arguments that are given.
        shows_value: whether the message has a value in it.
        message: its text; "" where it is made elsewhere.
    """

    path: str
    line: int
    name: str
    keywords: frozenset[str]
    shows_value: bool
    message: str = ""

    @property
    def has_remedy(self) -> bool:
        return "remedy" in self.keywords

    @property
    def names_a_value(self) -> bool:
        return self.shows_value or bool(self.keywords & {"found", "where"})

    @property
    def says_what_is_allowed(self) -> bool:
        """Whether an error that shows what was found also shows what is allowed, where there is something to show."""
        if "found" not in self.keywords or "allowed" in self.keywords or not re.search("[a-z]", self.message):
            return True
        patterns = (STATES_WHAT_IS_ALLOWED.pattern, *NOTHING_IS_ALLOWED)
        return any(re.search(one, self.message, re.IGNORECASE) for one in patterns)

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: {self.name}"


def error_classes() -> set[str]:
    """The names of all exception classes whose constructors take a remedy."""
    return {
        name
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, DryfitError) and name not in SUPPLY_THEIR_OWN
    }


def errors_of_sources(files: Iterable[Path]) -> set[str]:
    """The names of all error classes: those of `dryfit.errors`, and what is derived from them elsewhere."""
    known = error_classes()
    found = [
        (node.name, {getattr(base, "id", getattr(base, "attr", "")) for base in node.bases})
        for path in files
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef)
    ]
    while more := {name for name, bases in found if bases & known} - known:
        known |= more
    return known - SUPPLY_THEIR_OWN.keys() - NOT_FOR_USERS.keys()


def source_files(repository: Path) -> list[Path]:
    return [path for folder in SOURCES for path in sorted((repository / folder).rglob("*.py"))]


def error_calls(nodes: Iterable[ast.AST], path: str, known: set[str]) -> Iterator[ErrorCall]:
    """Calls of error classes and of `problem`, unless all facts are passed on by `**`."""
    for call in nodes:
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        is_problem = name in PROBLEM_METHODS and any(is_text(one) for one in call.args)
        if not call.args or not (name in known or is_problem):
            continue
        keywords = {one.arg for one in call.keywords}
        if None not in keywords:
            shows = any(isinstance(one, ast.FormattedValue) for text in call.args for one in ast.walk(text))
            given = frozenset(one.arg for one in call.keywords if one.arg and not is_none(one.value))
            yield ErrorCall(path, call.lineno, name, given, shows, text_of(call.args[0]))


def text_of(message: ast.expr) -> str:
    """The constant parts of a message."""
    return " ".join(
        one.value for one in ast.walk(message) if isinstance(one, ast.Constant) and isinstance(one.value, str)
    )


def is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in (None, "")


def is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.JoinedStr | ast.BinOp) or (
        isinstance(value, ast.Constant) and isinstance(value.value, str)
    )


@functools.cache
def calls_of_sources(repository: Path) -> list[ErrorCall]:
    files = source_files(repository)
    known = errors_of_sources(files)
    return [call for path in files for call in error_calls(nodes_of(path), str(path.relative_to(repository)), known)]


def test_each_error_has_a_remedy(repository: Path) -> None:
    calls = calls_of_sources(repository)
    assert len(calls) > 500, "the search finds errors"
    lacking = [str(call) for call in calls if not call.has_remedy]
    assert not lacking, "\n".join(lacking)


def test_errors_about_given_values_name_them(repository: Path) -> None:
    calls = [call for call in calls_of_sources(repository) if call.name in FOUND_OR_MESSAGE]
    lacking = [str(call) for call in calls if not call.names_a_value]
    assert not lacking, "\n".join(lacking)


def test_errors_about_a_value_say_what_is_allowed(repository: Path) -> None:
    lacking = [f"{call}: {call.message}" for call in calls_of_sources(repository) if not call.says_what_is_allowed]
    assert not lacking, "\n".join(lacking)


def test_each_pattern_without_an_allowed_value_is_met(repository: Path) -> None:
    open_calls = [one for one in calls_of_sources(repository) if "found" in one.keywords - {"allowed"}]
    for pattern in NOTHING_IS_ALLOWED:
        assert any(re.search(pattern, one.message, re.IGNORECASE) for one in open_calls), pattern


@pytest.mark.parametrize(
    ("call", "is_whole"),
    [
        ('ConfigError("Wrong size", found=3, remedy="Change it")', False),
        ('ConfigError("Wrong size", found=3, allowed="1 or 2", remedy="Change it")', True),
        ('ConfigError("The size must be 1 or 2", found=3, remedy="Change it")', True),
        ('ConfigError("The file cannot be read", found=error, remedy="Check it")', True),
        ('ConfigError("Wrong size", remedy="Change it")', True),
    ],
)
def test_an_error_that_does_not_say_what_is_allowed_is_found(call: str, is_whole: bool) -> None:
    (found,) = error_calls(ast.walk(ast.parse(call)), "here.py", error_classes())
    assert found.says_what_is_allowed is is_whole


@pytest.mark.parametrize(
    "call",
    [
        'ConfigError("Wrong", found=1)',
        'raise errors.ConfigError("Wrong")',
        'self.problem("Wrong", allowed=2)',
        'ConfigError("Wrong", remedy=None)',
    ],
)
def test_an_error_without_a_remedy_is_found(call: str) -> None:
    (found,) = error_calls(ast.walk(ast.parse(call)), "here.py", error_classes())
    assert not found.has_remedy


@pytest.mark.parametrize(
    "call",
    ['ConfigError("Wrong", remedy="Do this")', 'self.problem("Wrong", found=1, remedy=text)'],
)
def test_an_error_with_a_remedy_passes(call: str) -> None:
    (found,) = error_calls(ast.walk(ast.parse(call)), "here.py", error_classes())
    assert found.has_remedy


@pytest.mark.parametrize("known", [["alpha", "beta"], ["alpha"]])
@pytest.mark.parametrize("name", ["alpa", "nothing like it"])
def test_an_unknown_name_says_what_to_do(name: str, known: list[str]) -> None:
    assert UnknownNameError("letter", name, known).remedy
    assert MissingAttributeError("Letters", name, known).remedy
