"""Copies of layers that share weight arrays, and of what users note on layers and tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dryfit.network.layer import Layer, LayerT, is_table
from dryfit.network.tensor import Tensor

if TYPE_CHECKING:
    from dryfit.network.network import Network


def copy_layer(layer: LayerT) -> LayerT:
    """Return a layer outside any network with the same kind, name, notes and parameters. Weights are shared."""
    # The values were checked and converted when they were set: neither is done again.
    copy = object.__new__(type(layer))
    state = vars(copy)
    state.update(vars(layer))
    for name in _tables(type(layer)):
        state[name] = dict(state[name])
    state.update(inputs=[], outputs=[], network=None, index=-1)
    return copy


@functools.cache
def _tables(cls: type[Layer]) -> Sequence[str]:
    """The fields of a layer class that are dictionaries."""
    own = [one.name for one in cls.parameters() if is_table(one)]
    return ["output_types", *own]


def copy_tensor_notes(source: Tensor, destination: Tensor) -> None:
    """Copy what the user set on another tensor: range, formats, location and dimension names."""
    # They were checked when they were stated, and a network is copied a tensor at a time.
    old, new = vars(source), vars(destination)
    new["_dynamic_range"], new["_allowed_formats"] = old["_dynamic_range"], old["_allowed_formats"]
    new["location"], new["dimension_names"] = old["location"], dict(old["dimension_names"])


def copy_tensor(tensor: Tensor, network: Network) -> Tensor:
    """Return a tensor of another network with the same name, spec and notes, without producer and consumers."""
    copy = object.__new__(Tensor)
    state = vars(copy)
    state.update(vars(tensor))
    state.update(network=network, producer=None, consumers=[], dimension_names=dict(tensor.dimension_names))
    return copy


def note_origin(layer: Layer, *origins: Layer) -> None:
    """Add the ONNX nodes of the replaced layers to those of a new layer."""
    nodes = dict.fromkeys(node for origin in (layer, *origins) for node in origin.onnx_nodes)
    layer.onnx_nodes = tuple(nodes)
