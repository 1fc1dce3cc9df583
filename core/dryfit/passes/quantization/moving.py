"""What the passes that move quantizations and dequantizations share: what they know of tensors, and how they rewire.

A pass sweeps over the network once. Specs are inferred before it begins and kept up by hand, since what a network knows
of itself is inferred anew after each change.

Casts beside quantizations and dequantizations are part of them: exporters of FP16 models write such casts. A
dequantization computes in FP32 and rounds once to its own type, as a cast of its result would; a quantization divides
in FP32 whatever type it reads, as it would after a cast to FP32.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from dryfit.attrs_classes import frozen
from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer, LayerT
from dryfit.network.layer_copies import copy_layer, copy_tensor_notes, note_origin
from dryfit.network.layers.quantization import Cast, Dequantize, Quantize
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.passes.findings import PassFindings
from dryfit.passes.quantization.commutation import Commutation
from dryfit.passes.quantization.scale_numbers import QuantizationNumbers
from dryfit.quantization.rewrites import Rewrite, RewriteAction, RewriteJournal

Specs = Sequence[TensorSpec | None]

Judge = Callable[[Layer, Specs, Specs], str]
"""`(layer, specs of inputs with codes, with real numbers) -> why its device does not take the codes`; "" if it does."""


LayerTest = Callable[[Layer], bool]
"""Whether a layer is one of those that are meant."""


def any_device(layer: Layer, specs: Specs, real: Specs) -> str:  # noqa: ARG001
    """The judge of a network that has no devices yet: everything is computed."""
    return ""


class Movement:
    """One sweep of one pass over a network.

    Args:
        pass_name: for the journal.
        network: is rewritten.
        before: what earlier passes did, and which layers they made as copies of others.

    Attributes:
        specs: tensor to spec, also of tensors that the pass adds.
        outputs: the network's outputs.
        known: constants, and codes that a pass lets follow from constants alone: they are computed while building.
    """

    def __init__(self, pass_name: str, network: Network, before: RewriteJournal) -> None:
        network.refresh_shapes()
        self.network = network
        self.specs = {tensor: tensor.spec for tensor in network.tensors}
        self.outputs = set(network.outputs)
        self.has_changed = False
        self.known = {tensor for tensor in self.specs if tensor.is_constant}
        self._pass_name = pass_name
        self._journal = RewriteJournal(before=before)
        self._dead: list[Layer] = []
        self._names: dict[Layer, str] = {}

    def add_copy(
        self, layer: LayerT, place: str, data: Tensor, spec: TensorSpec, others: Iterable[Tensor | None] = ()
    ) -> LayerT:
        """Add a quantize or dequantize layer that is like another one, with its scale, at another place.

        Args:
            layer: the other one.
            place: where the new one is, for its name: such as `after pool`.
            data: what it reads.
            spec: of what it gives.
            others: its scale and zero point; those of the other one where none are given.
        """
        copy = copy_layer(layer)
        copy.name = f"{self._journal.origin(layer.name)} {place}"
        added = self.network.add_layer(copy, [data, *(others or layer.inputs[1:])], [spec])
        self._journal.note_copy(added.name, layer.name)
        self.specs[added.outputs[0]] = spec
        self.has_changed = True
        return added

    def redirect(self, readers: Iterable[tuple[Layer, int]], old: Tensor, new: Tensor) -> None:
        """Let layers, and the list of outputs, take one tensor in the place of another."""
        for reader, index in list(readers):
            reader.set_input(index, new)
        if old in self.outputs:
            self.network.outputs = [new if tensor is old else tensor for tensor in self.network.outputs]
            self.outputs.remove(old)
            self.outputs.add(new)
        self.has_changed = True

    def hand_name(self, old: Tensor, new: Tensor, name_of_old: str) -> None:
        """Give a new tensor the name and the notes of the one whose values it has, and that one another name."""
        name = old.name
        copy_tensor_notes(old, new)
        old.dynamic_range = None
        self.network.rename_tensor(old, self.network.free_tensor_name(name_of_old))
        self.network.rename_tensor(new, name)

    def retire(self, layer: Layer, heir: Layer | None = None) -> None:
        """Take a layer out at the end of the sweep, and give its name to the one that stands for it."""
        name = self._names.pop(layer, layer.name)
        self._dead.append(layer)
        if heir is not None:
            self._names[heir] = name
        self.has_changed = True

    def is_unread(self, tensor: Tensor) -> bool:
        """Whether nobody takes a tensor any more."""
        return not tensor.consumers and tensor not in self.outputs

    def record(
        self,
        layer: Layer,
        action: RewriteAction,
        over: Sequence[str],
        reason: str,
        compared: tuple[str, ...] = (),
    ) -> None:
        """Write a step down."""
        name = self._journal.origin(layer.name)
        self._journal.add(Rewrite(self._pass_name, name, action, tuple(over), reason, compared))

    def origin(self, layer: Layer) -> str:
        """The name of a layer in the user's network."""
        return self._journal.origin(layer.name)

    def finish(self) -> PassFindings:
        """Take out what is dead, and infer shapes again; returns what was done."""
        self.network.remove_layers(self._dead)
        for layer, name in self._names.items():
            self.network.rename_layer(layer, name)
            self._journal.note_copy(layer.name, name)
        self.network.refresh_shapes()
        return PassFindings(self.has_changed, rewrites=self._journal)


class QuantizationPass(abc.ABC):
    """A pass that sweeps over a network once and rewires its quantizations and dequantizations.

    Args:
        judge: says which layers devices compute on codes.
        over: the layers to move over: on the host, which moves codes of any type and zero point, and however little
            is gained; None for those that commute, for devices.
    """

    name: ClassVar[str]
    plugin: ClassVar[str] = ""

    def __init__(self, judge: Judge = any_device, over: LayerTest | None = None) -> None:
        self._judge = judge
        self._over = over

    def run(self, network: Network, before: PassFindings) -> PassFindings:
        """Sweep over a network; returns what became of each quantization and dequantization."""
        network.refresh_shapes()
        if not any(layer.is_quantization for layer in network.layers):
            return PassFindings(rewrites=RewriteJournal(before=before.rewrites))
        movement = Movement(self.name, network, before.rewrites)
        self.sweep(movement)
        return movement.finish()

    @abc.abstractmethod
    def sweep(self, movement: Movement) -> None:
        """Look at each layer once, in the order that the pass needs."""


@frozen
class Way:
    """Whether the layer next to a quantization or dequantization can be moved over.

    Attributes:
        stop: what is in the way, in a sentence; "" where nothing is.
        is_told: whether the journal records the stop: not where the place beside this layer is the goal.
    """

    stop: str = ""
    is_told: bool = True

    def __bool__(self) -> bool:
        return not self.stop


GOAL = Way("it has reached its goal", is_told=False)
"""Beside a layer that is computed on codes together with it."""


def way_by_kind(row: Commutation, layer: Layer, movement: Movement) -> Way:
    """What the kind of a layer and the user's wishes say."""
    obstacle = row.obstacle(layer, movement.specs) if row.commutes else row.reason
    if obstacle:
        return GOAL if row.is_quantizable else Way(f"a layer of kind {layer.kind} does not commute: {obstacle}")
    if layer.precision is not None or layer.output_types:
        return Way("a type is requested for this layer, so it stays as it is")
    return Way()


def way_on_codes(layer: Layer, indices: Iterable[int], dtype: DataType, movement: Movement, judge: Judge | None) -> Way:
    """What the layer's own type rule and its device say to codes in the place of real numbers at these inputs.

    Args:
        layer: the layer.
        indices: of the inputs.
        dtype: of the codes.
        movement: knows the specs.
        judge: speaks for the device; None where the layer is computed while building.
    """
    if judge is not None and not dtype.is_quantized:
        return Way(f"no device computes on {dtype.text} codes")
    real = [None if tensor is None else movement.specs[tensor] for tensor in layer.inputs]
    specs = list(real)
    for index in indices:
        found = specs[index]
        specs[index] = None if found is None else TensorSpec(found.shape, dtype)
    try:
        layer.infer_outputs(specs)
    except NetworkError as error:
        return Way(f"it is not computed on codes: {error}")
    return Way() if judge is None else Way(judge(layer, specs, real))


def way_on_the_host(row: Commutation, layer: Layer, numbers: Sequence[QuantizationNumbers], movement: Movement) -> Way:
    """What is said of a layer that the host computes on codes of any type, with zero points, of one scale a tensor.

    Args:
        row: of the layer's kind; the layer moves or picks codes, and adds none.
        layer: the layer.
        numbers: of the quantizations or dequantizations around it.
        movement: knows the specs.
    """
    if not numbers[0].is_per_tensor or any(one != numbers[0] for one in numbers):
        return GOAL
    indices = [index for index, _ in row.data_inputs(layer)]
    return way_by_kind(row, layer, movement) and way_on_codes(layer, indices, numbers[0].dtype, movement, None)


def readers_of(tensor: Tensor) -> list[Layer]:
    """The layers that read a tensor, each once."""
    return list(dict.fromkeys(layer for layer, _ in tensor.consumers))


def is_reading_data(layer: Layer, tensor: Tensor) -> bool:
    """Whether a layer quantizes this tensor, or dequantizes it: not where it is the scale."""
    return isinstance(layer, (Quantize, Dequantize)) and layer.inputs[0] is tensor


_NARROW = (DataType.HALF, DataType.BF16)


def absorb_into_dequantize(cast: Layer, movement: Movement) -> bool:
    """Let a dequantization give the type to which a cast rounds its result; returns whether there is such a cast."""
    source = cast.inputs[0] if isinstance(cast, Cast) and not cast.output_types else None
    dequantize = None if source is None else source.producer
    if not isinstance(cast, Cast) or not isinstance(dequantize, Dequantize) or dequantize.inputs[0] is None:
        return False
    if dequantize.to_type is not DataType.FLOAT or cast.to_type not in _NARROW:
        return False
    output = cast.outputs[0]
    spec = TensorSpec(movement.specs[output].shape, cast.to_type)
    readers = list(output.consumers)
    after = movement.add_copy(dequantize, f"as {cast.name}", dequantize.inputs[0], spec)
    after.to_type = cast.to_type
    note_origin(after, cast)
    cast.set_input(0, None)
    movement.redirect(readers, output, after.outputs[0])
    movement.hand_name(output, after.outputs[0], f"{output.name} absorbed")
    reason = f"the product is rounded once, to {cast.to_type.name}"
    movement.record(dequantize, RewriteAction.MOVED, [cast.name], reason)
    movement.retire(cast)
    if movement.is_unread(dequantize.outputs[0]):
        movement.retire(dequantize, after)
    return True


def absorb_into_quantizes(cast: Layer, quantizes: Sequence[Quantize], movement: Movement) -> Sequence[Quantize]:
    """Let quantizations read what a cast to FP32 reads; returns those that do now, none where it is no such cast."""
    source = cast.inputs[0] if isinstance(cast, Cast) and not cast.output_types else None
    if source is None or movement.specs[source].dtype not in _NARROW:
        return ()
    if movement.specs[cast.outputs[0]].dtype is not DataType.FLOAT:
        return ()
    for quantize in quantizes:
        quantize.set_input(0, source)
        note_origin(quantize, cast)
        reason = f"every {movement.specs[source].dtype.text} number is an FP32 number"
        movement.record(quantize, RewriteAction.MOVED, [cast.name], reason)
    movement.has_changed = True
    if movement.is_unread(cast.outputs[0]):
        cast.set_input(0, None)
        movement.retire(cast)
    return [one for one in quantizes if is_reading_data(one, source)]
