"""Composite layers are replaced by their parts, which each device places and fuses as it supports them."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_tensor_notes
from dryfit.network.layers.composite import CompositeLayer, Parts
from dryfit.network.network import Network
from dryfit.passes.findings import PassFindings
from dryfit.quantization.rewrites import RewriteJournal


class DecomposeCompositeLayers:
    """Replaces composite layers by their parts. The layer that computes the result takes the name.

    It runs once loops and conditionals are flat, as their bodies may have composite layers. Those in bodies that stay
    run by their references.
    """

    name = "decompose-composite-layers"
    plugin = ""

    def run(self, network: Network, before: PassFindings) -> PassFindings:
        """Decompose; returns where the parts come from."""
        journal = RewriteJournal(before=before.rewrites)
        # All parts are added before any layer goes, as each change makes the shapes behind it stale.
        found = [_Decomposition(layer) for layer in list(network.layers) if isinstance(layer, CompositeLayer)]
        for one in found:
            for old, new in zip(one.layer.outputs, one.results, strict=True):
                network.replace_uses(old, new)
                copy_tensor_notes(old, new)
                new.io_dtype = old.io_dtype
        network.remove_layers([one.layer for one in found])
        for one in found:
            one.take_names(network)
            for _, added in one.parts.added:
                if added.name != one.layer.name:
                    journal.note_copy(added.name, one.layer.name)
        return PassFindings(changed=bool(found), rewrites=journal)


class _Decomposition:
    """A composite layer and the parts that were added for it."""

    def __init__(self, layer: CompositeLayer) -> None:
        self.layer = layer
        self.parts = Parts(layer)
        self.results = layer.decompose(self.parts)

    def take_names(self, network: Network) -> None:
        """Give the parts the names and the settings of the layer, which is removed."""
        layer = self.layer
        for old, new in zip(layer.outputs, self.results, strict=True):
            network.rename_tensor(new, old.name)
        for part, added in self.parts.added:
            if not part:
                network.rename_layer(added, layer.name)
            added.metadata, added.onnx_nodes = layer.metadata, layer.onnx_nodes
            added.quantize_method = layer.quantize_method
            if layer.precision is not None and _is_computed(added):
                added.precision = layer.precision
        for index, dtype in layer.output_types.items():
            new = self.results[index]
            if new.producer is not None:
                new.producer.set_output_type(new.output_index, dtype)


def _is_computed(layer: Layer) -> bool:
    """Whether a precision that was set on a composite layer is meant for a part."""
    is_real = all(tensor.dtype.is_floating_point for tensor in (*layer.connected_inputs, *layer.outputs))
    return is_real and not layer.has_fixed_types and layer.kind != "constant" and layer.outputs[0].dtype in _COMPUTED


_COMPUTED = (DataType.FLOAT, DataType.HALF, DataType.BF16)
