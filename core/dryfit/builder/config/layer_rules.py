"""Lists of layers with a word for each, in one line, as trtexec spells them: `conv1:int8,conv2:fp16`.

The last colon of an entry ends the name, single quotes are left out, and a comma ends an entry wherever it stands: a
name with a comma or a single quote cannot be written.

Source: trtexec, `--layerPrecisions`, `--layerOutputTypes` and `--layerDeviceTypes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from dryfit.builder.placement.layer_pattern import LayerPattern
from dryfit.errors import ConfigError
from dryfit.network.data_types import STAND_IN_TYPES, DataType
from dryfit.network.network import Network

PRECISION_WORDS = {
    "fp32": DataType.FLOAT,
    "fp16": DataType.HALF,
    "bf16": DataType.BF16,
    "int8": DataType.INT8,
    "int32": DataType.INT32,
}
"""trtexec's words for types."""


def layer_entries(text: str) -> list[str]:
    """The entries of a list, without quotes and spaces around them."""
    return [entry.strip() for entry in text.replace("'", "").split(",") if entry.strip()]


def layer_list(pairs: Iterable[tuple[str, str]]) -> tuple[str, list[str]]:
    """(the text of a list, the names that it cannot have); of several words for one name the last counts.

    Example:
        >>> layer_list([("conv 1", "int8"), ("a,b", "fp16")])
        ('conv 1:int8', ['a,b'])
    """
    words = dict(pairs)
    unfit = [name for name in words if "," in name or "'" in name]
    return ",".join(f"{name}:{word}" for name, word in words.items() if name not in unfit), unfit


@attrs.frozen
class PrecisionRules:
    """Precisions, or output types, of single layers.

    Attributes:
        rules: pattern of layers (see `placement.layer_pattern`) to types: one, or for output types one an output.
        source: the option or file that they came from, for messages.

    Example:
        >>> PrecisionRules.parse("conv1:int8,kind:softmax:fp32", "--layer-precisions").set_precisions(network)
    """

    rules: Sequence[tuple[LayerPattern, tuple[DataType, ...]]]
    source: str

    @classmethod
    def parse(cls, text: str, source: str) -> PrecisionRules:
        """The rules of a list; several types of one layer are joined by `+`.

        Raises:
            ConfigError: entries are no rules; all of them are listed.
        """
        rules, wrong = [], []
        for entry in layer_entries(text):
            name, _, words = (part.strip() for part in entry.rpartition(":"))
            types = tuple(PRECISION_WORDS.get(word.strip().lower()) for word in words.split("+"))
            known = tuple(dtype for dtype in types if dtype is not None)
            if name and len(known) == len(types):
                rules.append((LayerPattern(name, repr(entry)), known))
            else:
                wrong.append(repr(entry))
        if wrong:
            allowed = f"NAME:TYPE,... with the types {', '.join(PRECISION_WORDS)}"
            raise ConfigError("This is no precision of a layer", where=source, found="; ".join(wrong), allowed=allowed)
        return cls(rules, source)

    def set_precisions(self, network: Network) -> None:
        """Set the precisions of the layers that rules fit; later rules win.

        Raises:
            ConfigError: a rule fits no layer, or has several types; all of them are listed, and nothing is set.
        """
        several = [f"{pattern.where}: a layer has one precision" for pattern, types in self.rules if len(types) > 1]
        self._require(network, several)
        for pattern, types in self.rules:
            for layer in pattern.layers_in(network.layers):
                layer.precision = types[0]

    def set_output_types(self, network: Network) -> None:
        """Set the types of the outputs of the layers that rules fit; one type is that of every output.

        Where a layer is not named itself, only its outputs of real numbers get a type: a pattern for all layers must
        not cast the integers of shape computations.

        Raises:
            ConfigError: a rule fits no layer, or has another number of types than a layer has outputs; all of them are
                listed, and nothing is set.
        """
        wrong = [
            f"{pattern.where}: layer {layer.name!r} has {len(layer.outputs)} outputs"
            for pattern, types in self.rules
            for layer in pattern.layers_in(network.layers)
            if len(types) not in (1, len(layer.outputs))
        ]
        self._require(network, wrong)
        for pattern, types in self.rules:
            for layer in pattern.layers_in(network.layers):
                for index, output in enumerate(layer.outputs):
                    if layer.name == pattern.pattern or output.dtype in STAND_IN_TYPES:
                        layer.set_output_type(index, types[index % len(types)])

    def _require(self, network: Network, problems: Sequence[str]) -> None:
        unmatched = [one.problem(network.layers) for one, _ in self.rules if not one.layers_in(network.layers)]
        if unmatched or problems:
            raise ConfigError(
                "The types do not fit the network", where=self.source, found="; ".join([*unmatched, *problems])
            )
