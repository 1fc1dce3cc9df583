"""The lists of layers by device that a builder prints, in both of their forms.

Up to TensorRT 8.2 a heading is followed by one line: `{a,b}, {c}` for the DLA, with braces around each segment, and
`a + b, c` for the GPU. Later versions print a line per layer, `[DlaLayer] {ForeignNode[a...c]}` and
`[GpuLayer] CONVOLUTION: a + b`; a segment of the DLA then shows only its first and last layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from dryfit.attrs_classes import define, frozen
from dryfit.board.logs.prefixes import ERROR, UNSTATED, WARNING, LogLine

_HEADING = re.compile(r"^-+ Layers running on (?P<device>DLA|GPU)\b:?(?P<end> -+)? *(?P<rest>.*)$", re.IGNORECASE)
_LAYER = re.compile(r"\[(?P<device>Dla|Gpu)Layer\] ?(?P<name>.+?),?$")
_KIND = re.compile(r"^(?P<kind>[A-Z][A-Z0-9_]+): (?P<name>.+)$")
_NODE = re.compile(r"^\{?ForeignNode\[(?P<names>.*)\]\}?$")
_ENDS = re.compile(r"\.\.\.|…")
_CLONE = re.compile(r"_clone_\d+$")
_OPEN, _CLOSE = "([{", ")]}"


@frozen
class DlaSegment:
    """A segment that the builder put on the DLA, which becomes one loadable.

    Attributes:
        name: the builder's name for it.
        layers: its layers, as far as the log names them: all of them up to TensorRT 8.2, else the first and the last.
        is_complete: whether `layers` are all of its layers.
    """

    name: str
    layers: Sequence[str]
    is_complete: bool


@frozen
class GpuLayer:
    """An engine layer that the builder put on the GPU.

    Attributes:
        name: the builder's name for it; fused layers are joined by ` + `.
        kind: TensorRT's type of the layer; "" in logs of TensorRT 8.2 and older.
        layers: layers that were fused into it.
    """

    name: str
    kind: str
    layers: Sequence[str]


def parts_of(name: str) -> list[str]:
    """Return the layers that an engine layer's name joins.

    Example:
        >>> parts_of("PWN(PWN(Sigmoid_1), Mul_2) + (Unnamed Layer* 7) [Shuffle]")
        ['Sigmoid_1', 'Mul_2', '(Unnamed Layer* 7) [Shuffle]']
    """
    bare = name.replace("PWN(", "")
    parts = (part.strip() for one in re.split(r" \+ | \|\| ", bare) for part in one.split(", "))
    return [_CLONE.sub("", _balanced(part)) for part in parts if part.strip(") ")]


def segment_of(text: str) -> DlaSegment:
    """Return the segment that `{a,b}` or `{ForeignNode[a...c]}` describes."""
    node = _NODE.match(text)
    if node is not None:
        ends = [one for one in _ENDS.split(node["names"]) if one]
        return DlaSegment(text, [part for one in ends for part in parts_of(one)], is_complete=len(ends) < 2)
    return DlaSegment(text, list(_split(text[1:-1] if text[:1] == "{" else text)), is_complete=True)


@define
class LayerLists:
    """Collects both lists from the lines of a log.

    Attributes:
        segments: segments on the DLA, by name.
        gpu: engine layers on the GPU, by name.
        headings: devices whose headings were seen.
        limit: how many entries of each list are kept.
        dropped: number of entries that were not kept.
    """

    limit: int = 200_000
    segments: dict[str, DlaSegment] = attrs.field(factory=dict)
    gpu: dict[str, GpuLayer] = attrs.field(factory=dict)
    headings: set[str] = attrs.field(factory=set)
    dropped: int = 0
    _open: str = ""
    _text: str = ""

    def take(self, line: LogLine) -> bool:
        """Return whether a line belongs to a list, and collect what it lists."""
        heading = _HEADING.match(line.text) if line.text.startswith("-") else None
        if heading is not None:
            self.finish()
            self.headings.add(heading["device"].upper())
            if not heading["end"]:
                self._open, self._text = heading["device"].upper(), heading["rest"]
            return True
        layer = _LAYER.search(line.text) if "Layer]" in line.text else None
        if layer is not None:
            self.finish()
            self._add(layer["device"].upper(), layer["name"])
            return True
        if not self._open:
            return False
        if line.severity in (ERROR, WARNING) or (self._text and line.severity != UNSTATED):
            self.finish()
            return False
        if not line.text:
            if line.severity != UNSTATED:  # an empty list; a blank line comes from copying
                self.finish()
            return True
        if not self._text and not _is_list(self._open, line.text):
            self.finish()
            return False
        # A line that was broken when it was copied continues without a prefix.
        self._text += line.text
        return True

    def finish(self) -> None:
        """Collect a list whose end was not seen yet."""
        device, text = self._open, self._text
        self._open = self._text = ""
        for entry in _split(text) if text else ():
            self._add(device, entry)

    def _add(self, device: str, name: str) -> None:
        entries = self.segments if device == "DLA" else self.gpu
        if len(entries) >= self.limit and name not in entries:
            self.dropped += 1
        elif device == "DLA":
            self.segments[name] = segment_of(name)
        else:
            typed = _KIND.match(name)
            kind, bare = (typed["kind"], typed["name"]) if typed else ("", name)
            self.gpu[bare] = GpuLayer(bare, kind, parts_of(bare))


def _is_list(device: str, text: str) -> bool:
    """Whether a line can be the list that follows a heading of the form up to TensorRT 8.2."""
    return text.startswith("{") if device == "DLA" else not text.startswith(("[", "-", "&&&&"))


def _split(text: str) -> Iterator[str]:
    """Split at commas outside brackets; the rest of a list that was cut off is its last entry."""
    depth = start = 0
    for place, letter in enumerate(text):
        if letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            depth = max(depth - 1, 0)
        elif letter == "," and not depth:
            yield from filter(None, [text[start:place].strip()])
            start = place + 1
    yield from filter(None, [text[start:].strip()])


def _balanced(text: str) -> str:
    """Remove closing parentheses that close nothing."""
    text = text.strip()
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1].rstrip()
    return text
