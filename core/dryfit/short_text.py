"""Texts for people: long lists and names are shortened, and names of strangers cannot steer a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

LONGEST_NAME = 80
"""Characters of a name that are told in full."""

LISTED = 3
"""So many of what is alike are named; the others are counted."""

_VARYING = re.compile(r"'[^']*'|\d+")
_RULE = re.compile(r"\[([a-z]\w*(?:\.\w+)+)\]")
_NAME = re.compile(r"'([^']*)'")
_QUOTED = re.compile(rf"'([^'\s]{{{LONGEST_NAME + 1},}})'")


def printable(text: str, kept: str = "\n\t") -> str:
    """A text whose control characters, bidirectional controls and other invisible characters are written as escapes.

    They are those that `repr` escapes. Names in a model may hold any of them, and a terminal obeys some.

    Args:
        text: the text.
        kept: control characters that stay; "" for a name or a cell, which is one line.

    Example:
        >>> printable("conv" + chr(27) + "[31m") == "conv" + chr(92) + "x1b[31m"
        True
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in kept else repr(one)[1:-1] for one in text)


def short_name(name: str, longest: int = LONGEST_NAME) -> str:
    """A name, without its middle where it is long: both ends of names that tools made of others differ.

    Args:
        name: in full.
        longest: how many characters it may have.

    Example:
        >>> short_name("conv1")
        'conv1'
        >>> len(short_name("a" * 600))
        80
    """
    if len(name) <= longest:
        return name
    head = (longest - 3) // 2
    return f"{name[:head]}...{name[head + 3 - longest :]}"


def with_short_names(text: str) -> str:
    """A text whose quoted names are shortened; names with spaces in them stay, as prose between two names has such."""
    return _QUOTED.sub(lambda found: f"'{short_name(found[1])}'", text)


def count_text(number: int, noun: str) -> str:
    """A number with its noun: `1 layer`, `2 layers`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


_LEVELS = " ▁▂▃▄▅▆▇█"


def sparkline(counts: Sequence[int], width: int = 16) -> str:
    """A histogram as one line of blocks; heights are logarithmic, so that rare values can be seen.

    Args:
        counts: of the bins.
        width: most characters; neighboring bins are summed.

    Example:
        >>> sparkline([1000, 10, 0, 1])
        '█▃ ▁'
    """
    group = -(-len(counts) // width) or 1
    sums = [sum(counts[start : start + group]) for start in range(0, len(counts), group)]
    most = math.log1p(max(sums, default=0)) or 1.0
    return "".join(_LEVELS[math.ceil(math.log1p(one) / most * (len(_LEVELS) - 1))] for one in sums)


def lengths(amounts: Sequence[int], width: int = 40) -> list[int]:
    """The lengths of the parts of a bar, at least 1 for each that is not 0.

    Args:
        amounts: of the parts.
        width: of the bar; small parts may make it longer.

    Example:
        >>> lengths([97, 3, 0], 10)
        [10, 1, 0]
    """
    whole = sum(amounts) or 1
    return [max(round(width * amount / whole), int(amount > 0)) for amount in amounts]


def likeness(text: str) -> str:
    """What a text has in common with others that say the same of other things: no quoted names, no numbers."""
    return _VARYING.sub("", text)


def grouped(entries: Sequence[tuple[object, str, str]]) -> list[str]:
    """Lines about many things, where of those that are alike the first is told in full.

    Args:
        entries: what makes them alike, the name, and the text that is told of one alone.
    """
    groups: dict[object, list[tuple[str, str]]] = {}
    for key, name, text in entries:
        groups.setdefault(key, []).append((name, with_short_names(text)))
    lines = []
    for members in groups.values():
        if len(members) <= LISTED:
            lines += [text for _, text in members]
            continue
        others = [repr(short_name(name)) for name, _ in members[1:]]
        names = f"{', '.join(others[: LISTED - 1])} and {len(members) - LISTED} more"
        lines += [members[0][1], f"  likewise {names}"]
    return lines


def grouped_warnings(texts: Iterable[str]) -> list[str]:
    """Warnings of a build, where alike ones are told together: those of the same rules, or else of the same words."""
    entries: list[tuple[object, str, str]] = []
    for text in dict.fromkeys(texts):
        rules, name = tuple(_RULE.findall(text)), _NAME.search(text)
        entries.append((rules or likeness(text), name[1] if name else text, text))
    return grouped(entries)
