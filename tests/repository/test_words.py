"""Messages read as an engineer would write them: no rule stated as a fact, no private words for common terms.

All strings of more than a word are searched, and the `Attributes:` of docstrings, which become descriptions in JSON
Schema; comments, other docstrings and names are not.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.repository.source_trees import nodes_of

CHECKED = ("core/dryfit", "targets", "plugins", "frontends")
"""Folders whose messages follow the rules."""

DATA = ("class_tables.py", "enum_tables.py")
"""Files whose strings are tables of TensorRT's names and not messages."""

BANNED = (
    (r"^(This|The \w+|It|A \w+) (is|are) no (?!longer\b)\w", "translated negation", "is not a ..., not supported"),
    (r"\b(There|These) (is|are) no such\b|^There is no \w+$", "stilted negation", "Unknown ...; no ... with this name"),
    (r"\b(is|are) (above|below) -?\d", "a rule stated as a fact", "must be greater than ...; must be less than ..."),
    (
        r"^(An?|The|Each|Every|Both|Inputs?|Indices|Scales|Extents) [\w ]*?(is|are) (finite|at least|INT|one)\b",
        "a rule stated as a fact",
        "must be",
    ),
    (r"\bone (value|element|scale|number|extent|repeat|term) an? (?!time)\w", "article as a unit", "one ... per ..."),
    (r"\b(have|has|gives?) one (name|type|shape|rank)\b", "one for the same", "must be unique; must have the same ..."),
    (r"\bequal ranks\b", "translated", "the same rank"),
    (r"\bis required and absent\b", "translated", "Required ... is missing"),
    (r"\bdo(es)? not fit together\b", "private word", "is inconsistent; must match"),
    (r"\b(told of|is told|tells? of)\b", "private word", "report, show, list"),
    (r"\breckoned\b", "private word", "used in the estimate; calculated"),
    (r"\bnowhere\b", "private word", "unplaced; not found"),
    (r"\b(was|were|is|what is|nothing was) said\b", "private word", "given, specified; Defaults: ..."),
    (r"\bof which\b", "translated relative clause", "whose"),
    (r"\bmicroseconds?\b(?!:)|\bmilliseconds?\b(?!:)", "a unit spelled out", "us, ms"),
    (r"\b(anew)\b", "archaic", "again"),
    (r"\bthat (they|it) pays?\b|\bEdits that pay\b", "private word", "Suggested ..."),
    (r"\bfrom below\b", "private word", "lower bound"),
    (r"\ba text\b(?! file)", "translated", "a string"),
    (r"\b(FLOAT|HALF), ", "an enum name in text", "FP32, FP16"),
    (r"\bis brought by\b|\bthat brings it\b", "private word", "provides"),
    (
        r"(?<!here )\b(is|are|was) no (?!longer\b|more\b|other\b|need\b)[a-z`'A-Z]",
        "translated negation",
        "is not a ...",
    ),
    (r"\b[Tt]here (is|are) no .* named\b", "stilted negation", "Unknown ...: ..."),
    (r"\b(stands?|stood) (for|in|at|before|between|against|beside|around|there)\b", "translated", "is, represents"),
    (r"(?<![\w.])(FLOAT|HALF|DOUBLE)(?![\w\[]| RANGE)", "an enum name in text", "FP32, FP16, FP64"),
    (
        r"\b(once|time|bytes|values?|images|joules) an? (run|channel|tensor|image|second|core|sample|layer)\b",
        "article as a unit",
        "per run, per channel",
    ),
    (r"\bmust be one (without|with|that|of which)\b", "translated", "must have; must not have"),
    (r"\b(parts?|parted|parting) (from|company|first|ways)\b", "private word for diverging", "differs, diverges"),
    (r"(?<!must be )\breal numbers\b", "private word", "floating point"),
    (r"\b(is|are|was|were) asked (for|about)\b", "private word", "requested"),
    (r"\bheld against\b", "private word", "compared with, verified against"),
    (r"\bmakes? up\b|\bmakes \w+ up\b|\bmade up\b", "private word", "invents, generates"),
    (r"\b(says?|tells?) (why|more|what|which|how|how much|it all)\b", "private word", "shows, explains"),
    (r"\bwanted by\b", "private word", "required by"),
    (r"\bits? makers?\b", "private word", "maintainers"),
)  # fmt: skip
"""(pattern, why it is banned, what to write instead)."""

MESSAGE_CALLS = re.compile(
    r"(Error|Exception|Warning|problem|refusal|_refuse|Line|Table|Entries|Note|Rule|Finding|Violation|warn|warning|info"
    r"|note|echo|secho|fail|skip)$"
)
"""Calls whose arguments are messages even if they are one word."""

NOT_MESSAGES = re.compile(
    r"^\s*$|^[\w.:/*<>=+-]*$|^[\w ]*\w[:_]\w[\w: ]*$"  # one word, or names of fields
    r"|^(def|class|import|from|if|for|return|with) |^[\w.]+ = |^#!"  # source text
    r"|^\n\w+: .*;"  # a table of names
)

ATTRIBUTES = re.compile(r"^Attributes:\n((?: {4}.*\n?|\n)*)", re.MULTILINE)
"""The section of a docstring whose entries become descriptions in JSON Schema."""


def message_literals(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """The line and the text of each literal that a user may read; what is put in is written {}.

    Those are all strings of more than a word, wherever they stand: in calls, records, tables and returned sentences.
    Docstrings are not, except for `Attributes:`, and neither are annotations and source text.
    """
    docstrings, inner = set(), set()
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(node.value)
            yield from attribute_texts(node.value)
        elif isinstance(node, ast.JoinedStr):
            inner.update(child for child in ast.walk(node) if child is not node)
        elif isinstance(node, ast.Call) and MESSAGE_CALLS.search(called(node)):
            yield from (found for text in node.args for found in literals_of(text))
    for node in nodes:
        if node not in docstrings and node not in inner:
            yield from (found for found in literals_of(node, deep=False) if not NOT_MESSAGES.search(found[1]))


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def attribute_texts(docstring: ast.Constant) -> Iterator[tuple[int, str]]:
    """The `Attributes:` of a docstring, line by line."""
    if isinstance(docstring.value, str):
        plain = inspect.cleandoc(docstring.value)
        for section in ATTRIBUTES.finditer(plain):
            first = docstring.lineno + plain[: section.start(1)].count("\n")
            yield from enumerate(section[1].splitlines(), first)


def literals_of(text: ast.AST, *, deep: bool = True) -> Iterator[tuple[int, str]]:
    if isinstance(text, ast.JoinedStr):
        parts = [str(one.value) if isinstance(one, ast.Constant) else "{}" for one in text.values]
        yield text.lineno, "".join(parts)
    elif isinstance(text, ast.Constant):
        if isinstance(text.value, str):
            yield text.lineno, text.value
    elif deep and isinstance(text, (ast.IfExp, ast.BoolOp, ast.BinOp)):
        for child in ast.iter_child_nodes(text):
            yield from literals_of(child)


def faults_of(nodes: Sequence[ast.AST]) -> list[str]:
    """Each banned construction of the messages of a source, with its reason and what to write instead."""
    return [
        f"line {line}: {text!r}: {reason}; write: {instead}"
        for line, text in dict.fromkeys(message_literals(nodes))
        for pattern, reason, instead in BANNED
        if re.search(pattern, text)
    ]


@pytest.mark.parametrize("place", CHECKED)
def test_messages_have_no_banned_words(place: str, repository: Path) -> None:
    root = repository / place
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
    assert files, place
    found = [
        f"{path.relative_to(repository)}, {fault}"
        for path in files
        if path.name not in DATA
        for fault in faults_of(nodes_of(path))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ('Error("The divisor is above 0", found=divisor)', "a rule stated as a fact"),
        ('self.problem("The indices are at least 0")', "a rule stated as a fact"),
        ('Error(f"`{name}` has one value an axis")', "article as a unit"),
        ('Error("This is no calibration cache")', "translated negation"),
        ('Error("Wrong", remedy="Quantize the model anew")', "archaic"),
        ('option("--rule", help="What is told of the network")', "private word"),
        ('Error("Wrong" if bad else "Two tensors have one name")', "one for the same"),
        ('Error("Wrong", allowed="FLOAT, HALF")', "an enum name in text"),
        ('REASONS = {"pool": "its average is no code"}', "translated negation"),
        ('def reason():\n    return f"{name} is in real numbers"', "private word"),
        ('class A:\n    """One.\n\n    Attributes:\n        name: what is said of it.\n    """', "private word"),
    ],
)
def test_a_wrong_sentence_is_found(call: str, reason: str) -> None:
    faults = faults_of(list(ast.walk(ast.parse(call))))
    assert faults
    assert reason in faults[0]


@pytest.mark.parametrize(
    "call",
    [
        'Error("The divisor must be greater than 0", found=divisor, remedy="Set `divisor`")',
        'Error("ELU is not supported on DLA", allowed="RELU, SIGMOID")',
        'def other():\n    """This is no message."""',
        'word("nowhere", "microseconds:time bytes_moved")',
    ],
)
def test_a_good_sentence_and_other_texts_pass(call: str) -> None:
    assert not faults_of(list(ast.walk(ast.parse(call))))


def test_every_rule_says_why_and_what_to_write() -> None:
    for pattern, reason, instead in BANNED:
        re.compile(pattern)
        assert reason
        assert instead
