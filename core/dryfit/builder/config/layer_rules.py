"""Rules for single layers: patterns, with the devices, precisions and output types that they set.

A pattern is the name of a layer, `kind:convolution` for all layers of a kind, or `onnx:Conv_0` for the layers that were
imported from an ONNX node. In each of them, `*` matches any text and `?` matches one character. A pattern that is
exactly the name of a layer matches only that layer, because TensorRT's own names contain stars: `(Unnamed Layer* 3)
[Softmax]`.

Placement rules are `pattern = DEVICE`, one per line; the last one that matches a layer wins. Lists with one value per
layer are a single line in trtexec syntax: `conv1:int8,conv2:fp16`. The last colon of an entry ends the name, single
quotes are removed, and every comma ends an entry: a name that contains a comma or a single quote cannot be written.

Source: trtexec, `--layerPrecisions`, `--layerOutputTypes` and `--layerDeviceTypes`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.errors import ConfigError, DryfitError
from dryfit.network.data_types import STAND_IN_TYPES, DataType
from dryfit.network.layer import LAYER_KINDS, Layer
from dryfit.network.network import Network
from dryfit.plugins import registry

PRECISION_WORDS = {
    "fp32": DataType.FLOAT,
    "fp16": DataType.HALF,
    "bf16": DataType.BF16,
    "int8": DataType.INT8,
    "int32": DataType.INT32,
}
"""trtexec's words for types."""


def layer_entries(text: str) -> list[str]:
    """Return the entries of a list, without surrounding quotes and spaces."""
    return [entry.strip() for entry in text.replace("'", "").split(",") if entry.strip()]


def layer_list(pairs: Iterable[tuple[str, str]]) -> tuple[str, list[str]]:
    """Return (text of a list, names that it cannot represent); of several values for one name, the last wins.

    Example:
        >>> layer_list([("conv 1", "int8"), ("a,b", "fp16")])
        ('conv 1:int8', ['a,b'])
    """
    words = dict(pairs)
    unfit = [name for name in words if "," in name or "'" in name]
    return ",".join(f"{name}:{word}" for name, word in words.items() if name not in unfit), unfit


@frozen
class PrecisionRules:
    """Precisions, or output types, of single layers.

    Attributes:
        rules: types by layer pattern (see `placement.layer_pattern`): one type, or for output types one per output.
        source: option or file that the rules come from, for messages.

    Example:
        >>> PrecisionRules.parse("conv1:int8,kind:softmax:fp32", "--layer-precisions").set_precisions(network)
    """

    rules: Sequence[tuple[LayerPattern, tuple[DataType, ...]]]
    source: str

    @classmethod
    def parse(cls, text: str, source: str) -> PrecisionRules:
        """Parse the rules of a list; several types of one layer are joined by `+`.

        Raises:
            ConfigError: Some entries are not rules; the message lists all of them.
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
            raise ConfigError(
                "Invalid layer precision",
                where=source,
                found="; ".join(wrong),
                allowed=allowed,
                remedy="Write each entry as NAME:TYPE, separated by commas",
            )
        return cls(rules, source)

    def set_precisions(self, network: Network) -> None:
        """Set the precision of the layers that match a rule; later rules win.

        Raises:
            ConfigError: A rule matches no layer, or has several types. The message lists all of them, and nothing is
                set.
        """
        several = [f"{pattern.where}: only one precision allowed" for pattern, types in self.rules if len(types) > 1]
        self._require(network, several)
        for pattern, types in self.rules:
            for layer in pattern.layers_in(network.layers):
                layer.precision = types[0]

    def set_output_types(self, network: Network) -> None:
        """Set the output types of the layers that match a rule; a single type applies to every output.

        If a layer is not matched by name, only its floating-point outputs get a type: a pattern for all layers must not
            cast the integers of shape computations.

        Raises:
            ConfigError: A rule matches no layer, or its number of types differs from the number of outputs. The message
                lists all of them, and nothing is set.
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
                "The types must match the network",
                where=self.source,
                found="; ".join([*unmatched, *problems]),
                remedy="Use names or patterns of layers with at most as many types as outputs: "
                "`dryfit check --verbose` lists the layers",
            )


KIND, ONNX = "kind", "onnx"


@frozen
class LayerPattern:
    """A layer pattern.

    Attributes:
        pattern: text of the pattern.
        where: line, entry or option that contains the pattern, for messages.

    Example:
        >>> [layer.name for layer in LayerPattern("kind:softmax", "line 1").layers_in(network.layers)]
        ['prob']
    """

    pattern: str
    where: str

    def layers_in(self, layers: Sequence[Layer]) -> list[Layer]:
        """Return the layers that the pattern matches."""
        subject, text = self._subject
        exact = [layer for layer in layers if layer.name == self.pattern or text in _names(layer, subject)]
        pattern = re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
        return exact or [layer for layer in layers if any(map(pattern.fullmatch, _names(layer, subject)))]

    @property
    def _subject(self) -> tuple[str, str]:
        """Return (subject of the pattern, the pattern itself)."""
        prefix, colon, text = self.pattern.partition(":")
        return (prefix, text.strip()) if colon and prefix in (KIND, ONNX) else ("layer", self.pattern)

    def problem(self, layers: Sequence[Layer]) -> str:
        """Return why the pattern matches none of the layers, with the closest existing name."""
        subject, text = self._subject
        known = dict.fromkeys(name for layer in layers for name in _names(layer, subject))
        if subject == KIND and text in LAYER_KINDS:
            return f"{self.where}: The network has no layer of the kind {text!r}, it has {', '.join(sorted(known))}"
        lowered = {name.lower(): name for name in known}
        close = difflib.get_close_matches(text.strip("*?").lower(), lowered, n=1)
        hint = f". Did you mean {lowered[close[0]]!r}?" if close else ""
        what = {KIND: "layer kind", ONNX: "ONNX node"}.get(subject, subject)
        if "*" in text or "?" in text:
            return f"{self.where}: No {what} matches {text!r}{hint}"
        return f"{self.where}: Unknown {what} {text!r}{hint}"


def _names(layer: Layer, subject: str) -> Sequence[str]:
    return {KIND: (layer.kind,), ONNX: layer.onnx_nodes}.get(subject, (layer.name,))


COMMENT = re.compile(r"(^|\s)#.*")
SPELLING = "pattern = DEVICE, where a pattern is a layer's name, kind:KIND or onnx:NODE"


@frozen
class PlacementRule:
    """A placement rule.

    Attributes:
        pattern: text of the pattern.
        device: device as written; case-insensitive.
        where: line or entry that contains the rule, for messages.
    """

    pattern: str
    device: str
    where: str

    @property
    def layers(self) -> LayerPattern:
        """The layers that the rule matches."""
        return LayerPattern(self.pattern, self.where)


@frozen
class PlacementRules:
    r"""Rules that give layers devices of their own.

    Attributes:
        rules: rules in order; the last one that matches a layer wins.
        source: file or option that the rules come from, for messages.

    Example:
        >>> PlacementRules.parse("* = DLA\nkind:softmax = GPU").apply(network, config)
        >>> config.get_device_type(network.layer("prob"))
        'GPU'
    """

    rules: Sequence[PlacementRule]
    source: str = "placement rules"

    @classmethod
    def parse(cls, text: str, source: str = "placement rules") -> PlacementRules:
        """Parse rules, one per line; `#` starts a comment at the start of a line or after a space.

        Raises:
            ConfigError: Some lines are not rules; the message lists all of them.
        """
        lines = ((number, COMMENT.sub("", line).strip()) for number, line in enumerate(text.splitlines(), 1))
        return cls._parsed([(f"line {number}", line) for number, line in lines if line], "=", source, SPELLING)

    @classmethod
    def parse_layer_device_types(cls, text: str, source: str = "--layer-device-types") -> PlacementRules:
        """Parse rules in trtexec syntax: `name:DLA,name2:GPU`.

        Later entries win; see `dryfit.builder.config.layer_rules`.

        Raises:
            ConfigError: Some entries are not rules; the message lists all of them.
        """
        return cls._parsed([(repr(one), one) for one in layer_entries(text)], ":", source, "NAME:DEVICE,...")

    @classmethod
    def from_mapping(cls, devices: Mapping[str, str], source: str = "placement rules") -> PlacementRules:
        """Create rules from a mapping of patterns to devices."""
        return cls([PlacementRule(pattern, device, repr(pattern)) for pattern, device in devices.items()], source)

    @classmethod
    def _parsed(cls, entries: Sequence[tuple[str, str]], separator: str, source: str, spelling: str) -> PlacementRules:
        rules, wrong = [], []
        for where, entry in entries:
            pattern, _, device = (part.strip() for part in entry.rpartition(separator))
            if pattern and device:
                rules.append(PlacementRule(pattern, device, where))
            else:
                wrong.append(f"{where}: {entry}")
        if wrong:
            raise ConfigError(
                "Invalid placement rule",
                where=source,
                found="; ".join(wrong),
                allowed=spelling,
                remedy="Write one rule per line: pattern = DEVICE",
            )
        return cls(rules, source)

    def apply(self, network: Network, config: BuilderConfig) -> None:
        """Set the device types of the layers that match a rule; other layers are not changed.

        Raises:
            ConfigError: A rule names a device that does not exist, or matches no layer. The message lists all of them
                with the closest names, and nothing is set.
        """
        matched = [(rule, rule.layers.layers_in(network.layers)) for rule in self.rules]
        unmatched = [rule.layers.problem(network.layers) for rule, layers in matched if not layers]
        problems = [*_device_problems(self.rules), *unmatched]
        if problems:
            raise ConfigError(
                "The placement must match the network and the installed devices",
                where=self.source,
                found="; ".join(problems),
                remedy="Fix these rules: `dryfit check --verbose` lists the layers, `dryfit targets list` the devices",
            )
        # Later rules overwrite earlier ones.
        for rule, layers in matched:
            for layer in layers:
                config.set_device_type(layer, rule.device)


def _device_problems(rules: Iterable[PlacementRule]) -> list[str]:
    problems = []
    for rule in rules:
        try:
            registry.target(rule.device)
        except DryfitError as error:
            problems.append(f"{rule.where}: {error}")
    return problems
