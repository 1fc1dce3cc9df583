"""The numbers that a page shows, and which of them its JSON lacks.

Numbers are read from the text of the page, with their units. A number is in the JSON if some value there of the same
kind (bytes, times, shares, errors, or plain numbers) rounds to it. Names and sentences that the JSON holds as strings
are the same in both, and are taken out of the text first; the length of a list or an object in the JSON is a number of
it too.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
from tests.browser import Tab

UNITS = {
    "B": ("bytes", 1.0),
    "KiB": ("bytes", 2.0**10),
    "MiB": ("bytes", 2.0**20),
    "GiB": ("bytes", 2.0**30),
    "us": ("time", 1.0),
    "ms": ("time", 1e3),
    "s": ("time", 1e6),
    "%": ("share", 0.01),
    "k": ("plain", 1e3),
    "M": ("plain", 1e6),
    "G": ("plain", 1e9),
    "": ("plain", 1.0),
}
KINDS = {
    "share": r"share|saturated",
    "time": r"microseconds",
    "bytes": r"bytes|size|pools|limit|needed",
    "error": r"error_factor",
}
NUMBER = re.compile(
    r"(?<![\w./:@#-])(?P<error>\+-)?(?P<digits>-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)"
    r"(?:[ \u00a0]?(?P<unit>KiB|MiB|GiB|us|ms|%|[BskMG])(?!\w)|(?![\w/:]|[.-]\w))"
)
TEXTS = (
    "[...document.querySelectorAll('section')].map(section => [section.id, [...section.querySelectorAll("
    "'.finding, .basis, figcaption, caption, td, .blocks p, .blocks li, svg > desc')].map(one => one.textContent)])"
)
LARGE = 10
"""Numbers from which two significant digits may be all that is stated, as in estimates."""


@attrs.frozen
class PageNumber:
    """A number of a page.

    Attributes:
        part: name of the part.
        text: the number with its unit.
        kind: what it measures.
        value: in microseconds, bytes, or as a share.
        tolerance: half a unit of its last digit.
        sentence: where it stands.
    """

    part: str
    text: str
    kind: str
    value: float
    tolerance: float
    sentence: str


def numbers_of_page(tab: Tab, page: Path, data: Any) -> Iterator[PageNumber]:
    """Every number in the text of a page, but those inside of names and sentences of the JSON."""
    tab.open(page, runs=False)
    names = sorted({one for one in _strings(data) if not one.isdigit()}, key=len, reverse=True)
    for part, texts in tab.run(TEXTS):
        for sentence in texts:
            rest = sentence
            for name in names:
                if name in rest:
                    rest = re.sub(rf"(?<!\d){re.escape(name)}(?![\d])", "\0", rest)
            for found in NUMBER.finditer(rest):
                yield _number(part, found, sentence)


def _number(part: str, found: re.Match[str], sentence: str) -> PageNumber:
    digits = found["digits"].replace(",", "")
    kind, factor = UNITS[found["unit"] or ""]
    kind = "error" if found["error"] else kind
    value = float(digits)
    tolerance = 0.5 * 10.0 ** -len(digits.partition(".")[2].partition("e")[0])
    significant = digits.strip("-").replace(".", "").strip("0")
    if len(significant) <= 2 and abs(value) >= LARGE and "." not in digits and kind in ("plain", "time"):
        tolerance = 0.5 * 10.0 ** (len(digits.strip("-")) - 2)
    return PageNumber(part, found[0], kind, value * factor, tolerance * factor * 1.0001, sentence)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) > 2:
        yield value
    elif isinstance(value, dict):
        for key, held in value.items():
            yield from _strings(key)
            yield from _strings(held)
    elif isinstance(value, list):
        for held in value:
            yield from _strings(held)


class JsonNumbers:
    """The numbers of a JSON document by their kind."""

    def __init__(self, data: Any) -> None:
        found: dict[str, set[float]] = defaultdict(set)
        for kind, value in _numbers(data, ""):
            found[kind].add(value - 1 if kind == "error" else value)
            if kind == "error":
                found["plain"].add(value)  # "within a factor of 3.6"
        self._sorted = {kind: sorted(values) for kind, values in found.items()}

    def __contains__(self, number: PageNumber) -> bool:
        values: Sequence[float] = self._sorted.get(number.kind, ())
        slack = number.tolerance + 1e-12
        place = bisect.bisect_left(values, number.value - slack)
        is_least = "less than" in number.sentence and number.kind == "share"
        return (place < len(values) and values[place] <= number.value + slack) or (
            is_least and any(0 < one < number.value for one in values)
        )


def _numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict | list):
        yield "plain", float(len(value))
        held = value.items() if isinstance(value, dict) else (("", one) for one in value)
        for key, one in held:
            yield from _numbers(one, f"{path}.{key}" if key else path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        kinds = (kind for kind, words in KINDS.items() if re.search(words, path.rpartition(".")[2]))
        outer = (kind for kind, words in KINDS.items() if re.search(words, path))
        yield next(kinds, next(outer, "plain")), float(value)
