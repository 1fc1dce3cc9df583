"""Loops and conditionals that need not be layers: those whose course is known before the run become plain layers.

Every device can take plain layers, so a conditional with a known condition becomes its branch, and a loop with a known
and small number of iterations is unrolled. What is left runs its bodies by the references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dryfit.errors import NetworkError
from dryfit.network.layer import Graph, Layer
from dryfit.network.layer_copies import copy_layer, copy_tensor_notes
from dryfit.network.layers.control_flow import ConditionalLayer, LoopInputs, LoopLayer
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.movement import Concatenation, Identity, Squeeze, Unsqueeze
from dryfit.network.layers.slice import Shuffle, Slice
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.findings import PassFindings
from dryfit.passes.simplify import fold_constants
from dryfit.quantization.rewrites import RewriteJournal

MOST_ITERATIONS = 64
MOST_LAYERS = 4096
"""A loop with more iterations, or beyond this many new layers in a network, stays one layer. Our choice: a build takes
about as long as the network has layers, and loops over short sequences are far smaller."""


class FlattenControlFlow:
    """Replaces conditionals with known conditions by their branches, and unrolls short loops."""

    name = "flatten-control-flow"
    plugin = ""

    def run(self, network: Network, before: PassFindings) -> PassFindings:
        """Flatten, from the outermost layers to those of their bodies; returns where the new layers come from."""
        journal = RewriteJournal(before=before.rewrites)
        left, changed = MOST_LAYERS, False
        while True:
            flattened = 0
            for layer in [one for one in network.layers if one.bodies]:
                added = _flatten(network, layer, left)
                if added is None:
                    continue
                for name in added:
                    journal.note_copy(name, layer.name)
                left -= len(added)
                flattened += 1
            if not flattened:
                return PassFindings(changed=changed, rewrites=journal)
            changed = True
            network.refresh_shapes()
            fold_constants(network)  # a condition or trip count inside may be known now


def _flatten(network: Network, layer: Layer, most_layers: int) -> list[str] | None:
    """Replace a layer by those of its bodies; returns the names of these, or None if it stays."""
    network.refresh_shapes()  # and with them the order, so that new layers stand at the end while they are added
    known = {id(layer) for layer in network.layers}
    try:
        if isinstance(layer, ConditionalLayer):
            outputs = _branch(network, layer, most_layers)
        elif isinstance(layer, LoopLayer):
            outputs = _Unrolling(network, layer).outputs(most_layers)
        else:
            return None
    except NetworkError:  # a later iteration may have shapes that its layers do not take: the run reports that
        outputs = None
    added = [one for one in network.layers if id(one) not in known]
    if outputs is None:
        network.remove_layers(added)
        return None
    _replace(network, layer, outputs, {id(one) for one in added})
    return [one.name for one in added]


def _replace(network: Network, layer: Layer, outputs: Sequence[Tensor], added: set[int]) -> None:
    """Let tensors take the places and names of a layer's outputs."""
    taken: set[int] = set()
    names = [tensor.name for tensor in layer.outputs]
    results = []
    for old, tensor in zip(layer.outputs, outputs, strict=True):
        new = tensor
        if id(tensor.producer) not in added or id(tensor) in taken or isinstance(tensor.producer, Constant):
            new = network.add_layer(Identity(onnx_nodes=layer.onnx_nodes), [tensor]).outputs[0]
        taken.add(id(new))
        if old.dynamic_range is not None or new.dynamic_range is None:
            copy_tensor_notes(old, new)
        new.io_dtype = old.io_dtype
        network.replace_uses(old, new)
        results.append(new)
    network.remove_layers([layer])
    for name, new in zip(names, results, strict=True):
        network.rename_tensor(new, name)


def _branch(network: Network, layer: ConditionalLayer, most_layers: int) -> list[Tensor] | None:
    condition = layer.connected_input(0).spec.value
    if condition is None:
        return None
    body = layer.branch(condition)
    if len(body.layers) > most_layers:
        return None
    inputs = [layer.connected_input(index) for index in range(1, len(layer.inputs))]
    return _inlined(network, body, inputs, layer, str, {})


def _inlined(
    network: Network,
    body: Graph,
    inputs: Sequence[Tensor],
    owner: Layer,
    named: Callable[[str], str],
    shared: dict[int, Tensor],
) -> list[Tensor]:
    """Add copies of a body's layers to a network; returns its outputs.

    Args:
        network: the network.
        body: a body of `owner`.
        inputs: the body's inputs.
        owner: the layer that is replaced.
        named: makes the name of a copy from the name in the body.
        shared: identity of tensors of the body to tensors of the network that copies need not be made of.
    """
    tensors = {id(tensor): given for tensor, given in zip(body.inputs, inputs, strict=True)}
    tensors.update(shared)
    for layer in body.layers:
        if all(id(tensor) in tensors for tensor in layer.outputs):
            continue
        copy = copy_layer(layer)
        vars(copy).update(name=named(layer.name), onnx_nodes=layer.onnx_nodes or owner.onnx_nodes)
        new = network.add_layer(copy, [None if tensor is None else tensors[id(tensor)] for tensor in layer.inputs])
        for old, output in zip(layer.outputs, new.outputs, strict=True):
            network.rename_tensor(output, network.free_tensor_name(named(old.name)))
            copy_tensor_notes(old, output)
            tensors[id(old)] = output
    return [tensors[id(tensor)] for tensor in body.outputs]


class _Unrolling:
    """Unrolls one loop."""

    def __init__(self, network: Network, layer: LoopLayer) -> None:
        self._network = network
        self._layer = layer
        self._parts: LoopInputs = layer.parts(layer.inputs)
        specs = layer.parts([None if tensor is None else tensor.spec for tensor in layer.inputs])
        self._trips = layer.known_trips(specs)
        self._fixed = self._unchanging()

    def outputs(self, most_layers: int) -> list[Tensor] | None:
        """Add the layers of all iterations; returns what takes the places of the loop's outputs, None if it stays."""
        layer, parts = self._layer, self._parts
        repeated = len(layer.body.layers) - len(self._fixed)
        size = repeated * self._trips + (2 * self._trips + 1) * (len(parts.scanned) + len(parts.lengths))
        if not self._is_sound() or self._trips > MOST_ITERATIONS or size + len(self._fixed) > most_layers:
            return None
        states: list[Tensor] = list(parts.states)
        slices: list[list[Tensor]] = [[] for _ in layer.output_axes]
        shared: dict[int, Tensor] = {}
        for trip in range(self._trips):
            given = [self._number(trip), *states, *self._slices(trip), *parts.captured]
            results = self._iteration(trip, given, shared)
            states = results[: layer.num_states]
            for found, one in zip(slices, results[layer.num_states :], strict=True):
                found.append(one)
        return [*states, *(self._joined(index, found) for index, found in enumerate(slices))]

    def _is_sound(self) -> bool:
        """Whether the number of iterations is known, and nothing is left for the run to check or to fill."""
        layer, parts, trips = self._layer, self._parts, self._trips
        if trips < 0 or (not trips and layer.output_axes):
            return False
        extents = [tensor.shape[axis] for tensor, axis in zip(parts.scanned, layer.input_axes, strict=True)]
        if parts.trip_limit is None and any(extent != trips for extent in extents):
            return False
        lengths = [None if tensor is None else tensor.spec.value for tensor in parts.lengths]
        are_full = all(
            tensor is None or (value is not None and int(value.reshape(-1)[0]) == trips)
            for tensor, value in zip(parts.lengths, lengths, strict=True)
        )
        return are_full and all(extent >= trips for extent in extents)

    def _unchanging(self) -> set[int]:
        """The layers of the body that compute the same in every iteration, by identity."""
        body = self._layer.body
        count = len(body.inputs) - len(self._parts.captured)
        changing = {id(tensor) for tensor in body.inputs[:count]}
        fixed: set[int] = set()
        for layer in body.layers:
            if any(id(tensor) in changing for tensor in layer.connected_inputs) or layer.kind == "plugin":
                changing.update(id(tensor) for tensor in layer.outputs)
            else:
                fixed.add(id(layer))
        return fixed

    def _iteration(self, trip: int, given: Sequence[Tensor], shared: dict[int, Tensor]) -> list[Tensor]:
        """Add the layers of one iteration; what does not change is added with the first one."""
        body, before = self._layer.body, len(self._network.layers)
        results = _inlined(self._network, body, given, self._layer, lambda name: f"{name} [{trip}]", shared)
        if not shared:
            copies = iter(self._network.layers[before:])
            for layer in body.layers:
                copy = next(copies)
                if id(layer) in self._fixed:
                    shared.update(zip(map(id, layer.outputs), copy.outputs, strict=True))
        return results

    def _add(self, layer: Layer, what: str, *inputs: Tensor) -> Tensor:
        vars(layer).update(name=f"{self._layer.name}/{what}", onnx_nodes=self._layer.onnx_nodes)
        return self._network.add_layer(layer, inputs).outputs[0]

    def _constant(self, values: object, shape: tuple[int, ...], what: str) -> Tensor:
        return self._add(Constant(shape=shape, weights=np.asarray(values, np.int64).reshape(shape)), what)

    def _number(self, trip: int) -> Tensor:
        number = self._layer.body.inputs[0]
        return self._constant(trip, number.spec.shape, f"iteration [{trip}]")

    def _slices(self, trip: int) -> list[Tensor]:
        layer, slices = self._layer, []
        for index, tensor in enumerate(self._parts.scanned):
            axis, shape = layer.input_axes[index], tensor.shape
            place = shape[axis] - 1 - trip if layer.input_reverse[index] else trip
            rest = (*shape[:axis], *shape[axis + 1 :])
            what = f"input {index} [{trip}]"
            if tensor.spec.is_static:
                start = tuple(place if one == axis else 0 for one in range(len(shape)))
                window = tuple(1 if one == axis else extent for one, extent in enumerate(shape))
                cut = self._add(Slice(start=start, shape=window, stride=(1,) * len(shape)), what, tensor)
                slices.append(self._add(Shuffle(reshape_dims=rest, zero_is_placeholder=False), what, cut))
            else:
                one_axis = Slice(start=(place,), shape=(1,), stride=(1,), axes=(axis,))
                cut = self._add(one_axis, what, tensor)
                slices.append(self._add(Squeeze(), what, cut, self._constant([axis], (1,), f"{what} axis")))
        return slices

    def _joined(self, index: int, slices: Sequence[Tensor]) -> Tensor:
        layer = self._layer
        axis, what = layer.output_axes[index], f"output {index}"
        widened = []
        for place, tensor in enumerate(slices):
            shape = (*tensor.shape[:axis], 1, *tensor.shape[axis:])
            if tensor.spec.is_static:
                new: Layer = Shuffle(reshape_dims=shape, zero_is_placeholder=False)
                widened.append(self._add(new, f"{what} [{place}]", tensor))
            else:
                axes = self._constant([axis], (1,), f"{what} [{place}] axis")
                widened.append(self._add(Unsqueeze(), f"{what} [{place}]", tensor, axes))
        ordered = widened[::-1] if layer.output_reverse[index] else widened
        return self._add(Concatenation(axis=axis), what, *ordered)
