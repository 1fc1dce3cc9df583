"""Layers as TensorRT's ONNX parser names them: by the node, and where that has no name by its first output.

A node that becomes several layers gives its name to one of them; the others get a number behind it. What is said of a
layer of ours is therefore said of its node.

Source: onnx-tensorrt, the names that the parser registers layers under.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from dryfit.network.layer import Layer
from dryfit.network.network import Network

Word = TypeVar("Word")


def tensorrt_name(layer: Layer) -> str:
    """The name that TensorRT's parser gives the layer, or the node that it came from."""
    return layer.onnx_nodes[0] if layer.onnx_nodes else layer.name


def layers_by_name(network: Network) -> Mapping[str, list[Layer]]:
    """TensorRT's names to the layers of a network that go by them, constants left out."""
    found: dict[str, list[Layer]] = {}
    for layer in network.layers:
        if layer.kind != "constant":
            found.setdefault(tensorrt_name(layer), []).append(layer)
    return found


def words_by_name(
    network: Network, words: Iterable[tuple[Layer, Word]], what: str
) -> tuple[dict[str, Word], list[str], list[str]]:
    """(TensorRT's name to what is said of it, contradictions, notes on nodes of which only a part was meant).

    Args:
        network: the user's.
        words: layers and what is said of each.
        what: what that is, for messages.
    """
    named = layers_by_name(network)
    said = {layer.name: word for layer, word in words if layer.kind != "constant"}
    found: dict[str, Word] = {}
    problems, notes = [], []
    for name, layers in named.items():
        meant = [layer for layer in layers if layer.name in said]
        if any(said[layer.name] != said[meant[0].name] for layer in meant):
            told = ", ".join(f"{layer.name!r} {said[layer.name]}" for layer in meant)
            problems.append(f"{what} of layers from ONNX node {name!r} differ: {told}")
        elif meant:
            found[name] = said[meant[0].name]
            if len(meant) < len(layers):
                others = ", ".join(repr(layer.name) for layer in layers if layer not in meant)
                notes.append(f"{what} of ONNX node {name!r} holds for all of its layers, here also for {others}")
    return found, problems, notes


def plausible_name(name: str, listed: Collection[str]) -> str | None:
    """The entry of a list that trtexec takes for a layer or tensor; None for none.

    An entry that is the name itself wins; else the first in which one `*` stands for any text.
    """
    if name in listed:
        return name
    for entry in listed:
        before, star, behind = entry.partition("*")
        fits = name.startswith(before) and name.endswith(behind) and len(name) >= len(before) + len(behind)
        if star and fits:
            return entry
    return None


def strayed_names(names: Iterable[str], listed: Collection[str]) -> list[str]:
    """Names that are not listed, and that trtexec takes an entry for because of a `*` in it."""
    return [name for name in names if name not in listed and plausible_name(name, listed) is not None]
