"""Devices of layers by rules: `pattern = DEVICE`, one a line, the last one that fits a layer wins.

Patterns are those of `dryfit.builder.placement.layer_pattern`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.layer_rules import layer_entries
from dryfit.builder.placement.layer_pattern import LayerPattern
from dryfit.errors import ConfigError, DryfitError
from dryfit.network.network import Network
from dryfit.plugins import registry

COMMENT = re.compile(r"(^|\s)#.*")
SPELLING = "pattern = DEVICE, where a pattern is a layer's name, kind:KIND or onnx:NODE"


@attrs.frozen
class PlacementRule:
    """One rule.

    Attributes:
        pattern: as it was written.
        device: as it was written; in any case.
        where: line or entry, for messages.
    """

    pattern: str
    device: str
    where: str

    @property
    def layers(self) -> LayerPattern:
        """The layers that the rule speaks of."""
        return LayerPattern(self.pattern, self.where)


@attrs.frozen
class PlacementRules:
    r"""Rules that give layers devices of their own.

    Attributes:
        rules: in order; the last one that fits a layer wins.
        source: the file or option that they came from, for messages.

    Example:
        >>> PlacementRules.parse("* = DLA\nkind:softmax = GPU").apply(network, config)
        >>> config.get_device_type(network.layer("prob"))
        'GPU'
    """

    rules: Sequence[PlacementRule]
    source: str = "placement rules"

    @classmethod
    def parse(cls, text: str, source: str = "placement rules") -> PlacementRules:
        """The rules of a text: one a line; `#` begins a comment at the start of a line or after a space.

        Raises:
            ConfigError: lines are no rules; all of them are listed.
        """
        lines = ((number, COMMENT.sub("", line).strip()) for number, line in enumerate(text.splitlines(), 1))
        return cls._parsed([(f"line {number}", line) for number, line in lines if line], "=", source, SPELLING)

    @classmethod
    def parse_layer_device_types(cls, text: str, source: str = "--layer-device-types") -> PlacementRules:
        """The rules of `name:DLA,name2:GPU`, as trtexec spells them.

        Later entries win; see `dryfit.builder.config.layer_rules`.

        Raises:
            ConfigError: entries are no rules; all of them are listed.
        """
        return cls._parsed([(repr(one), one) for one in layer_entries(text)], ":", source, "NAME:DEVICE,...")

    @classmethod
    def from_mapping(cls, devices: Mapping[str, str], source: str = "placement rules") -> PlacementRules:
        """The rules of a mapping of patterns to devices."""
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
            raise ConfigError("This is no placement rule", where=source, found="; ".join(wrong), allowed=spelling)
        return cls(rules, source)

    def apply(self, network: Network, config: BuilderConfig) -> None:
        """Set the device types of the layers that a rule fits; the other layers stay as they are.

        Raises:
            ConfigError: rules name devices that do not exist, or fit no layer. All of them are listed, with the closest
                names, and nothing is set.
        """
        matched = [(rule, rule.layers.layers_in(network.layers)) for rule in self.rules]
        unmatched = [rule.layers.problem(network.layers) for rule, layers in matched if not layers]
        problems = [*_device_problems(self.rules), *unmatched]
        if problems:
            raise ConfigError(
                "The placement does not fit the network or the installed devices",
                where=self.source,
                found="; ".join(problems),
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
