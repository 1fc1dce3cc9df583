"""Messages read as an engineer would write them: no rule stated as a fact, no private words for common terms.

Only the string literals of messages are searched: comments, docstrings and names are not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKED = (
    "core/dryfit/errors.py",
    "core/dryfit/network",
    "core/dryfit/onnx",
    "core/dryfit/reference",
    "core/dryfit/quantization",
    "core/dryfit/calibration",
    "core/dryfit/passes",
)
"""Folders and files whose messages follow the rules; the others are added as their messages are revised."""

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
    (r"\bmicroseconds?\b|\bmilliseconds?\b", "a unit spelled out", "us, ms"),
    (r"\b(anew)\b", "archaic", "again"),
    (r"\bthat (they|it) pays?\b|\bEdits that pay\b", "private word", "Suggested ..."),
    (r"\bfrom below\b", "private word", "lower bound"),
    (r"\b(Tensor|Array|String|Value)?s? ?a text\b|\ba text\b", "translated", "a string"),
    (r"\b(FLOAT|HALF), ", "an enum name in text", "FP32, FP16"),
    (r"\bis brought by\b|\bthat brings it\b", "private word", "provides"),
)  # fmt: skip
"""(pattern, why it is banned, what to write instead)."""

MESSAGE_KEYWORDS = {"message", "remedy", "found", "allowed", "help", "short_help", "epilog", "title", "note", "where"}
MESSAGE_CALLS = re.compile(
    r"(Error|Exception|Warning|problem|refusal|_refuse|Line|Table|Note|warn|warning|echo|secho)$"
)


def message_literals(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each literal of a message; what is put in is written {}."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        texts: list[ast.expr] = [one.value for one in call.keywords if one.arg in MESSAGE_KEYWORDS]
        texts += call.args if MESSAGE_CALLS.search(name) else []
        for text in texts:
            yield from literals_of(text)


def literals_of(text: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(text, ast.JoinedStr):
        parts = [str(one.value) if isinstance(one, ast.Constant) else "{}" for one in text.values]
        yield text.lineno, "".join(parts)
    elif isinstance(text, ast.Constant):
        if isinstance(text.value, str):
            yield text.lineno, text.value
    elif isinstance(text, (ast.IfExp, ast.BoolOp, ast.BinOp)):
        for child in ast.iter_child_nodes(text):
            yield from literals_of(child)


def faults_of(source: str) -> list[str]:
    """Each banned construction of the messages of a source, with its reason and what to write instead."""
    return [
        f"line {line}: {text!r}: {reason}; write: {instead}"
        for line, text in message_literals(source)
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
        for fault in faults_of(path.read_text(encoding="utf-8"))
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
    ],
)
def test_a_wrong_sentence_is_found(call: str, reason: str) -> None:
    faults = faults_of(call)
    assert faults
    assert reason in faults[0]


@pytest.mark.parametrize(
    "call",
    [
        'Error("The divisor must be greater than 0", found=divisor, remedy="Set `divisor`")',
        'Error("ELU is not supported on DLA", allowed="RELU, SIGMOID")',
        'other("This is no message of the user")',
    ],
)
def test_a_good_sentence_and_other_texts_pass(call: str) -> None:
    assert not faults_of(call)


def test_every_rule_says_why_and_what_to_write() -> None:
    for pattern, reason, instead in BANNED:
        re.compile(pattern)
        assert reason
        assert instead
