"""Identities that cast become casts."""

from __future__ import annotations

from dryfit.network.copying import copy_tensor_notes, note_origin
from dryfit.network.layer import Layer
from dryfit.network.layers.cast import Cast
from dryfit.network.layers.identity import Identity
from dryfit.network.network import Network
from dryfit.passes.pipeline import network_pass


@network_pass("cast-identities")
def cast_identities(network: Network) -> bool:
    """Put casts in the places of identities that give another type than they take, under the same names."""
    replaced: list[tuple[Layer, Cast]] = []
    for layer in list(network.layers):
        source = layer.inputs[0] if isinstance(layer, Identity) and layer.inputs else None
        to_type = None if source is None else layer.cast_type(source.dtype)  # type: ignore[attr-defined]
        if to_type is not None:
            cast = network.add_layer(Cast(to_type=to_type, precision=layer.precision), [source])
            copy_tensor_notes(layer.outputs[0], cast.outputs[0])
            cast.outputs[0].io_dtype = layer.outputs[0].io_dtype
            network.replace_uses(layer.outputs[0], cast.outputs[0])
            note_origin(cast, layer)
            replaced.append((layer, cast))
    names = [(layer.name, layer.outputs[0].name, cast) for layer, cast in replaced]
    network.remove_layers([layer for layer, _ in replaced])
    for name, output, cast in names:
        network.rename_layer(cast, name)
        network.rename_tensor(cast.outputs[0], output)
    return bool(replaced)
