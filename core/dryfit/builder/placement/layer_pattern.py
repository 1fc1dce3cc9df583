"""Patterns that say which layers of a network a rule or an option speaks of.

A pattern is the name of a layer, `kind:convolution` for all layers of a kind, or `onnx:Conv_0` for the layers that came
from an ONNX node. In each of them `*` stands for any text and `?` for one character. A pattern that is a name as it
stands means that name alone, because TensorRT's own names have stars: `(Unnamed Layer* 3) [Softmax]`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

import attrs

from dryfit.network.layer import LAYER_KINDS, Layer

KIND, ONNX = "kind", "onnx"


@attrs.frozen
class LayerPattern:
    """One pattern.

    Attributes:
        pattern: as it was written.
        where: line, entry or option, for messages.

    Example:
        >>> [layer.name for layer in LayerPattern("kind:softmax", "line 1").layers_in(network.layers)]
        ['prob']
    """

    pattern: str
    where: str

    def layers_in(self, layers: Sequence[Layer]) -> list[Layer]:
        """The layers that the pattern speaks of."""
        subject, text = self._subject
        exact = [layer for layer in layers if layer.name == self.pattern or text in _names(layer, subject)]
        pattern = re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
        return exact or [layer for layer in layers if any(map(pattern.fullmatch, _names(layer, subject)))]

    @property
    def _subject(self) -> tuple[str, str]:
        """(what the pattern speaks of, the pattern itself)."""
        prefix, colon, text = self.pattern.partition(":")
        return (prefix, text.strip()) if colon and prefix in (KIND, ONNX) else ("layer", self.pattern)

    def problem(self, layers: Sequence[Layer]) -> str:
        """Why the pattern fits none of the layers, with the closest name that there is."""
        subject, text = self._subject
        known = dict.fromkeys(name for layer in layers for name in _names(layer, subject))
        if subject == KIND and text in LAYER_KINDS:
            return f"{self.where}: The network has no layer of the kind {text!r}, it has {', '.join(sorted(known))}"
        lowered = {name.lower(): name for name in known}
        close = difflib.get_close_matches(text.strip("*?").lower(), lowered, n=1)
        hint = f". Did you mean {lowered[close[0]]!r}?" if close else ""
        what = {KIND: "layer kind", ONNX: "ONNX node"}.get(subject, subject)
        if "*" in text or "?" in text:
            return f"{self.where}: There is no {what} that fits {text!r}{hint}"
        return f"{self.where}: There is no {what} named {text!r}{hint}"


def _names(layer: Layer, subject: str) -> Sequence[str]:
    return {KIND: (layer.kind,), ONNX: layer.onnx_nodes}.get(subject, (layer.name,))
