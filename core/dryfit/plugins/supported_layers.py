"""The page of supported layers for the devices that come with dryfit."""

from __future__ import annotations

from dryfit.plugins.registry import PluginRegistry
from dryfit.target.supported_layers import target_section

_HEAD = """# Supported layers

Written by `make docs` from the limit tables of the targets.

Each row is one rule. Its id stands in verdicts and messages, and `dryfit explain-rule ID` says more of it. A layer runs
on a device when every rule that speaks of it holds; what fails is told all at once. *Documented* rules are written in
the source that is named; *inferred* ones follow from what has been observed or from our reading; *confirmed* ones were
tried on the device. C, H and W are the last three extents of a tensor, and everything before them is batch.
"""


def supported_layers_page() -> str:
    """The page, in Markdown. Other installed targets are not on it."""
    targets = PluginRegistry(disabled="*").targets().values()
    return _HEAD + "".join(map(target_section, targets))
