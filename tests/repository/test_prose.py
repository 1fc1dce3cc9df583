"""Pages written by hand read as native engineering English: none of the constructions that sound translated.

Code blocks and inline code are not searched: they show what programs print, which has tests of its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CHANGELOG = REPOSITORY / "CHANGELOG.md"
COUNTED = r"(one (?!along|that)\w+|\d[\d,]*(\.\d+)?( \w+)?|once|twice|bytes|values|scales?|loadables|samples)"
UNITS = (
    "run|channel|layer|tensor|line|process|core|second|nanosecond|sample|batch|page|rule|kernel|row|device|image|byte"
    "|axis|call|build|segment|block|vector|cycle|step|position"
)

BANNED = (
    (r"(?<!\b[Tt]here )\b(is|are|was|were) no (?!longer\b|more\b|better\b)\w", "translated negation", "is not a ..."),
    (r"\bof which\b", "translated relative clause", "whose ..., ... of them, or two sentences"),
    (r"\b(told|tells)\b|\btell (of|it|damage|none)\b", "private word", "reports, shows, gives, states"),
    (r"\breckon", "private word", "estimated, calculated"),
    (r"\banew\b", "archaic", "again"),
    (r"\bnowhere\b", "private word", "not ... anywhere; unplaced"),
    (r"\b(is|are|was|were|be) said\b|\bwhat is said\b", "private word", "given, specified, described"),
    (r"\b(it|they|only|that|more of them) pays?\b", "private word", "is worth it; suggested"),
    (r"\bfrom below\b", "private word", "lower bound"),
    (r"(?<!as they )(?<!as it )\bstands?\b(?!-| for\b| alone\b)", "stands for is", "is"),
    (r"\bparts (name|company)\b|\b(as parts of|in parts)\b", "part for split or fraction", "separates; relative to"),
    (r"\b(micro|milli|nano)seconds?\b", "a unit spelled out", "us, ms, ns"),
    (rf"\b{COUNTED} (an?|to a) ({UNITS})\b", "article as a unit", "per ..."),
    (r"\bbesides(?=[.,;:|])", "archaic", "in addition, as well"),
    (r"\blies? (in|beside|where|at|together|on the|two|there|alone)\b", "lies for is", "is, is stored"),
    (r"\bbrought by\b|\bbrings? (its|their|his) own\b", "private word", "provides"),
    (r"\b(is|are) called so\b|\bis labeled so\b", "translated", "labeled as such"),
    (r"\bfor want of\b", "archaic", "for lack of"),
    (r"\b(FLOAT|HALF|DOUBLE)\b", "an enum name in prose", "FP32, FP16, FP64"),
    (r"((^|[.;:|*] )Who|([;:] |\band )who) (?!else\b)\w+s\b", "headless relative clause", "anyone who ..."),
    (r"\bin the place of\b", "translated", "instead of, in place of"),
    (r"\*\*(Else|Price)\.\*\*", "private heading", "**Alternatives.**, **Cost.**"),
    (r"\ba text\b(?! file)|\btexts\b", "translated", "a string"),
    (r"\b(have|has|with|of) one (type|shape|rank|name)\b", "one for the same", "the same ..."),
    (r"\bhand-over\b", "spelling", "handover"),
    (r"\bgo(es)? on (work|from|with)\w*\b", "translated", "continue"),
    (r"\bmay as well be\b|\bas well may\b", "translated", "can also be"),
)  # fmt: skip
"""(pattern, why it is banned, what to write instead)."""


def is_generated(page: Path) -> bool:
    """Whether `docs/generate.py` writes a page."""
    sys.path.insert(0, str(REPOSITORY / "docs"))
    try:
        from generate import PAGES, REFERENCE
    finally:
        sys.path.remove(str(REPOSITORY / "docs"))
    return page.parent == REFERENCE and page.name in PAGES


def pages() -> list[Path]:
    """The pages that people write."""
    folders = [path for name in ("docs", "examples") for path in sorted((REPOSITORY / name).rglob("*.md"))]
    return [*sorted(REPOSITORY.glob("*.md")), *(path for path in folders if not is_generated(path))]


def prose_of(text: str) -> str:
    """A page without its code, with the same lines."""
    text = re.sub(r"^ *```.*?^ *```", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", lambda found: "`code`" + "\n" * found[0].count("\n"), text)


def newest_section(text: str) -> str:
    """The newest version of a changelog."""
    return "## ".join(text.split("\n## ")[:2])


def faults_of(text: str) -> Iterator[str]:
    """Each banned construction of a page, with its line, the reason and what to write instead."""
    prose = prose_of(text)
    words = list(re.finditer(r"\S+", prose))
    flat = " ".join(word[0] for word in words)  # sentences go over line ends
    for pattern, reason, instead in BANNED:
        for found in re.finditer(pattern, flat):
            line = prose.count("\n", 0, words[flat.count(" ", 0, found.start())].start()) + 1
            yield f"line {line}: {found[0]!r}: {reason}; write: {instead}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_pages_have_no_banned_constructions(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = list(faults_of(newest_section(text) if page == CHANGELOG else text))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("This is no calibration cache.", "translated negation"),
        ("Two kinds, of\nwhich one is kept.", "translated relative clause"),
        ("The log tells the reason.", "private word"),
        ("The page is written anew.", "archaic"),
        ("There is one scale a tensor.", "article as a unit"),
        ("A copy takes 0.1 ms, once a process.", "article as a unit"),
        ("The definition stands in the manual.", "stands for is"),
        ("It takes 5 microseconds.", "a unit spelled out"),
        ("Weights in HALF are packed.", "an enum name in prose"),
        ("Who waits for a chunk spins.", "headless relative clause"),
        ("**Else.** A table.", "private heading"),
    ],
)
def test_a_wrong_sentence_is_found(text: str, reason: str) -> None:
    faults = list(faults_of(text))
    assert faults
    assert any(reason in fault for fault in faults)


@pytest.mark.parametrize(
    "text",
    [
        "There is no C extension.",
        "The pattern is no longer used.",
        "`DataType.HALF` is FP16.",
        "```text\nThis is no output of the user\n```",
        "A line break in `one\ncode` span.",
        "The stand-in is a T4.",
    ],
)
def test_good_sentences_and_code_pass(text: str) -> None:
    assert not list(faults_of(text))


def test_only_the_newest_section_of_a_changelog_is_searched() -> None:
    text = "# Changelog\n\n## 2.0\n\nFine.\n\n## 1.0\n\nWritten anew.\n"
    assert list(faults_of(text))
    assert not list(faults_of(newest_section(text)))


def test_every_rule_says_why_and_what_to_write() -> None:
    for pattern, reason, instead in BANNED:
        re.compile(pattern)
        assert reason
        assert instead
