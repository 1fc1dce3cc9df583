"""The network: layers and tensors under the user's own names, mutable, with shapes that are always current."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from dryfit.errors import NetworkError, UnfinishedLayerError, UnknownNameError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.creation_flags import CreationFlags
from dryfit.network.data_types import DataType
from dryfit.network.debug_marks import DebugMarks
from dryfit.network.layer import Graph, Layer, LayerT
from dryfit.network.layers import LayerMethods
from dryfit.network.operand_types import check_operand_types
from dryfit.network.printing import network_text
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.network.weights_role import WeightsNames

_MANY_OUTPUTS = 16
"""From this number of outputs on, they are looked up rather than gone through. `outputs` is added to, or replaced as a
whole: an output is never put in the place of another in it."""


class Network(KnownAttributes, CreationFlags, LayerMethods, WeightsNames, DebugMarks, Graph):
    """Layers and tensors, ordered so that every tensor is produced before it is used.

    Shapes and types are inferred when a layer is added, and again when one of its parameters changes.

    Args:
        name: name of the network, used in reports.
        flags: bit mask of `NetworkDefinitionCreationFlag`.

    Attributes:
        quantize_method: quantize method of every layer that does not set its own; "" means none. With "none", only
            layers that name a method use one, and imported models keep the integers that those layers need.

    Example:
        >>> from dryfit.network.data_types import DataType
        >>> network = Network("example")
        >>> x = network.add_input("x", DataType.FLOAT, (1, 3, 8, 8))
        >>> layer = network.add_activation(x, ActivationType.RELU)
        >>> network.mark_output(layer.get_output(0))
    """

    name: str
    metadata: dict[str, str]
    quantize_method: str
    layers: list[Layer]
    inputs: list[Tensor]
    outputs: list[Tensor]

    def __init__(self, name: str = "network", flags: int = 0) -> None:
        CreationFlags.__init__(self, flags)
        WeightsNames.__init__(self)
        DebugMarks.__init__(self)
        self.name = name
        self.metadata = {}
        self.quantize_method = ""
        self.layers = []
        self.inputs = []
        self.outputs = []
        self._tensors: dict[str, Tensor] = {}
        self._layer_names: set[str] = set()
        self._next_numbers: dict[str, int] = {}
        self._known_outputs: tuple[list[Tensor], set[int]] = (self.outputs, set())
        self._stale_from: int | None = None
        self._revision = 0

    # Building -----------------------------------------------------------------------------------------------------

    def add_input(self, name: str, dtype: DataType, shape: Sequence[int]) -> Tensor:
        """Add a network input. Dimensions of -1 are dynamic.

        Raises:
            NetworkError: The name is already used, or a dimension is less than -1.
        """
        if min(shape, default=0) < -1:
            raise NetworkError(
                "A dimension must be -1 (dynamic) or at least 0",
                where=f"input {name!r}",
                found=tuple(shape),
                remedy="Set -1 for a dynamic dimension",
            )
        tensor = self._new_tensor(name, TensorSpec(tuple(map(int, shape)), dtype))
        self.inputs.append(tensor)
        return tensor

    def add_layer(
        self,
        layer: LayerT,
        inputs: Sequence[Tensor | None],
        specs: Sequence[TensorSpec] | None = None,
        *,
        is_finished: bool = True,
        output_names: Sequence[str] = (),
    ) -> LayerT:
        """Add a new layer, connect its inputs and infer its outputs. The `add_*` methods call this.

        Args:
            layer: a layer that does not belong to a network yet.
            inputs: the layer's inputs; None for an absent optional input.
            specs: specs of the layer's outputs, if they are already known.
            output_names: names of the outputs that no tensor has; empty for names made of the layer's.
            is_finished: whether all parameters are set. If not, an error that a later parameter can fix is raised only
                when the shape of an output is read.

        Raises:
            NetworkError: The parameters do not match the inputs. The network is left unchanged.
        """
        for tensor in inputs:
            if tensor is not None and tensor.network is not self:
                raise NetworkError(
                    "The tensor belongs to another network",
                    where=f"tensor {tensor.name!r}",
                    remedy="Pass a tensor of this network",
                )
        own = vars(layer)  # what the network writes needs no check, and large networks are copied layer by layer
        own["index"] = len(self.layers)
        name = layer.name or f"(Unnamed Layer* {layer.index}) [{layer.layer_type.title()}]"
        own["name"] = name if name not in self._layer_names else self._free_layer_name(name)
        if specs is None:
            known = [None if tensor is None else tensor.spec for tensor in inputs]
            if self.is_strongly_typed:
                check_operand_types(layer, inputs)
            own["inputs"] = list(inputs)  # so that a refusal can name them
            try:
                layer.settle_weights(known)
                specs = layer.infer_outputs(known)
            except UnfinishedLayerError:
                if is_finished:
                    raise
            finally:
                own["inputs"] = []
        _connect(layer, list(inputs))
        for index, spec in enumerate([None] * layer.output_count if specs is None else specs):
            made = output_names[index] if output_names else self.free_tensor_name(f"{layer.name}_output{index or ''}")
            layer.outputs.append(self._new_tensor(made, spec, layer, index))
        own["network"] = self
        self.layers.append(layer)
        self._layer_names.add(layer.name)
        if specs is None:
            self.touch(layer.index)
        return layer

    def _fill(self, inputs: list[Tensor], layers: list[Layer]) -> None:
        """Make the inputs and layers of a copy those of this network, which is empty. They are connected already."""
        self.inputs, self.layers = inputs, layers
        self._tensors = {tensor.name: tensor for tensor in self.tensors}
        self._layer_names = {layer.name for layer in layers}
        self._revision += 1

    def mark_output(self, tensor: Tensor) -> None:
        """Mark a tensor as an output of the network."""
        if tensor.network is not self:
            raise NetworkError(
                "The tensor belongs to another network",
                where=f"tensor {tensor.name!r}",
                remedy="Pass a tensor of this network",
            )
        if not tensor.is_network_output:
            self.outputs.append(tensor)

    def unmark_output(self, tensor: Tensor) -> None:
        """Undo `mark_output`."""
        self.outputs = [output for output in self.outputs if output is not tensor]

    def rename_tensor(self, tensor: Tensor, name: str) -> None:
        """Rename a tensor.

        Raises:
            NetworkError: Another tensor has that name.
        """
        self.note_name(tensor, name)
        vars(tensor)["name"] = name

    def note_name(self, tensor: Tensor, name: str) -> None:
        """Register the new name of a tensor; called by `tensor.name = name`.

        Raises:
            NetworkError: Another tensor has that name.
        """
        if self._tensors.get(name, tensor) is not tensor:
            raise NetworkError(
                "Tensor names must be unique", where=f"tensor {tensor.name!r}", found=name, remedy="Choose another name"
            )
        if self._tensors.get(tensor.name) is tensor:
            del self._tensors[tensor.name]
            self._tensors[name] = tensor
        vars(self)["_revision"] += 1

    def rename_layer(self, layer: Layer, name: str) -> None:
        """Rename a layer; a number is appended if another layer already has the name."""
        if type(name) is str:  # what a setter of any attribute would ask
            vars(layer)["name"] = self.noted_layer_name(layer, name)
        else:
            layer.name = name

    def noted_layer_name(self, layer: Layer, name: str) -> str:
        """Register a layer's new name and return the name assigned; called by `layer.name = name`."""
        self._release_layer_name(layer.name)
        free = self._free_layer_name(name)
        self._layer_names.add(free)
        return free

    # Rewriting, for passes ----------------------------------------------------------------------------------------

    def replace_uses(self, old: Tensor, new: Tensor) -> None:
        """Make every consumer of `old`, and the list of outputs, use `new`. Tensors keep their names."""
        for layer, index in list(old.consumers):
            layer.set_input(index, new)
        self.outputs = [new if output is old else output for output in self.outputs]

    def remove_layer(self, layer: Layer) -> None:
        """Remove a layer.

        Raises:
            NetworkError: An output of the layer is still used.
        """
        self.remove_layers([layer])

    def remove_layers(self, layers: Sequence[Layer]) -> None:
        """Remove several layers in one pass over the network.

        Raises:
            NetworkError: An output of a removed layer is still used by a remaining layer, or is an output of the
                network. The network is left unchanged.
        """
        if not layers:
            return
        gone = {id(layer) for layer in layers}
        for layer in layers:
            for output in layer.outputs:
                if output.is_network_output or any(id(consumer) not in gone for consumer, _ in output.consumers):
                    where = f"layer {layer.name!r}"
                    raise NetworkError(
                        "The layer's output is still used",
                        where=where,
                        found=output.name,
                        remedy="Remove the layers that read it first, or unmark the output",
                    )
        for layer in layers:
            for index in range(len(layer.inputs) - 1, -1, -1):
                layer.set_input(index, None)
        for layer in layers:
            for output in layer.outputs:
                del self._tensors[output.name]
                self.unmark_debug(output)
            self._release_layer_name(layer.name)
            layer.network = None
        # Positions change, so what was noted as stale from some position on is stale from the first gap on.
        self.touch(min((layer.index for layer in layers), default=len(self.layers)))
        self.layers = [layer for layer in self.layers if id(layer) not in gone]
        self._renumber()

    def sort(self) -> None:
        """Sort the layers topologically, keeping the current order where possible.

        Raises:
            NetworkError: The layers form a cycle.
        """
        if self._is_sorted:
            if self._stale_from is not None:
                self._stale_from = 0
            return
        waiting = {
            id(layer): sum(t is not None and t.producer is not None for t in layer.ordering_inputs)
            for layer in self.layers
        }
        self._renumber()
        ready = [layer.index for layer in self.layers if not waiting[id(layer)]]
        ordered: list[Layer] = []
        while ready:
            layer = self.layers[heapq.heappop(ready)]
            ordered.append(layer)
            for output in layer.outputs:
                for consumer, index in output.consumers:
                    if index in consumer.late_inputs:
                        continue
                    waiting[id(consumer)] -= 1
                    if not waiting[id(consumer)]:
                        heapq.heappush(ready, consumer.index)
        if len(ordered) != len(self.layers):
            cyclic = [layer.name for layer in self.layers if waiting[id(layer)]]
            raise NetworkError(
                "The layers must not form a cycle",
                found=", ".join(map(repr, cyclic)),
                remedy="Reconnect one of these layers",
            )
        self.layers = ordered
        self._renumber()
        if self._stale_from is not None:
            self._stale_from = 0

    # Looking ------------------------------------------------------------------------------------------------------

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return len(self.layers)

    @property
    def num_inputs(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    def get_layer(self, index: int) -> Layer:
        """Return the layer at a position."""
        return self.layers[index]

    def get_input(self, index: int) -> Tensor:
        """Return the input at a position."""
        return self.inputs[index]

    def get_output(self, index: int) -> Tensor:
        """Return the output at a position."""
        return self.outputs[index]

    def layer(self, name: str) -> Layer:
        """Return the layer with a given name.

        Raises:
            UnknownNameError: No layer has this name.
        """
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise UnknownNameError("layer", name, self._layer_names, where=f"network {self.name!r}")

    def tensor(self, name: str) -> Tensor:
        """Return the tensor with a given name.

        Raises:
            UnknownNameError: No tensor has this name.
        """
        if name not in self._tensors:
            raise UnknownNameError("tensor", name, self._tensors, where=f"network {self.name!r}")
        return self._tensors[name]

    def find_tensor(self, name: str) -> Tensor | None:
        """Return the tensor with a given name, or None."""
        return self._tensors.get(name)

    def is_output(self, tensor: Tensor) -> bool:
        """Return whether a tensor is marked as an output with `mark_output`."""
        outputs = self.outputs
        if len(outputs) < _MANY_OUTPUTS:
            return tensor in outputs  # tensors are equal to themselves only
        known, found = self._known_outputs
        if known is not outputs:
            known, found = self._known_outputs = outputs, set()
        if len(found) < len(outputs):
            found.update(map(id, outputs[len(found) :]))
        return id(tensor) in found

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors: inputs first, then the outputs of the layers in order."""
        return [*self.inputs, *(output for layer in self.layers for output in layer.outputs)]

    def __repr__(self) -> str:
        outputs = ", ".join(repr(tensor.name) for tensor in self.outputs)
        inputs = ", ".join(repr(tensor.name) for tensor in self.inputs)
        plural = "" if self.num_layers == 1 else "s"
        return f"<Network {self.name!r}: {inputs} -> {outputs}; {self.num_layers} layer{plural}>"

    def __str__(self) -> str:
        return network_text(self)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> Layer:
        return self.layers[index]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    # Shapes -------------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """Counter that increases whenever shapes or names of tensors may have changed, invalidating inferred data."""
        return self._revision

    def touch(self, index: int) -> None:
        """Record that shapes from this layer on may have changed."""
        self._revision += 1
        self._stale_from = index if self._stale_from is None else min(index, self._stale_from)

    @property
    def knows_shapes(self) -> bool:
        """Whether all shapes were inferred since a layer, an input or a parameter changed."""
        return self._stale_from is None

    def refresh_shapes(self) -> None:
        """Infer the shapes again that `touch` invalidated.

        Raises:
            NetworkError: The parameters of a layer do not match its inputs.
        """
        if self._stale_from is None:
            return
        start, self._stale_from = self._stale_from, None
        if any(
            t is not None and t.producer is not None and t.producer.index >= layer.index
            for layer in self.layers[start:]
            for t in layer.ordering_inputs
        ):
            self.sort()
            start = 0
        try:
            for layer in self.layers[start:]:
                known = [None if t is None else t.spec for t in layer.ordering_inputs]
                layer.settle_weights(known)
                specs = layer.infer_outputs(known)
                for output, spec in zip(layer.outputs, specs, strict=True):
                    output._spec = spec  # noqa: SLF001  the network owns its tensors
        except NetworkError:
            self._stale_from = start
            raise

    def _new_tensor(
        self, name: str, spec: TensorSpec | None, producer: Layer | None = None, output_index: int = 0
    ) -> Tensor:
        if name in self._tensors:
            raise NetworkError(
                "Tensor names must be unique", where=f"network {self.name!r}", found=name, remedy="Choose another name"
            )
        tensor = Tensor(name, self, producer, output_index, spec=spec)
        self._tensors[name] = tensor
        vars(self)["_revision"] += 1  # a setter would ask whether there is such a name, for each tensor
        return tensor

    def _free_layer_name(self, name: str) -> str:
        """The name, or the name with the smallest number that no layer has.

        The search goes on from the last number that was given, so that n layers of one name cost n steps, not n * n.
        """
        if name not in self._layer_names:
            return name
        number = self._next_numbers.get(name, 1)
        while f"{name}_{number}" in self._layer_names:
            number += 1
        self._next_numbers[name] = number
        return f"{name}_{number}"

    def _release_layer_name(self, name: str) -> None:
        self._layer_names.discard(name)
        self._next_numbers.clear()  # a smaller number may be free now

    def free_tensor_name(self, name: str) -> str:
        """Return the name, with a number appended if another tensor already has it."""
        candidate, number = name, 1
        while candidate in self._tensors:
            candidate, number = f"{name}_{number}", number + 1
        return candidate

    def _renumber(self) -> None:
        for index, layer in enumerate(self.layers):
            if layer.index != index:
                vars(layer)["index"] = index

    @property
    def _is_sorted(self) -> bool:
        """Whether every layer stands after those whose outputs it needs, and knows its position."""
        known = {id(tensor) for tensor in self.inputs}
        for position, layer in enumerate(self.layers):
            if layer.index != position:
                return False
            for tensor in layer.ordering_inputs:
                if tensor is not None and id(tensor) not in known:
                    return False
            known.update(map(id, layer.outputs))
        return True


def _connect(layer: Layer, inputs: list[Tensor | None]) -> None:
    """Connect all inputs of a layer that has none yet and is in no network: the same as `set_input` for each."""
    while inputs and inputs[-1] is None:
        inputs.pop()
    layer.inputs.extend(inputs)
    for index, tensor in enumerate(inputs):
        if tensor is not None:
            tensor.consumers.append((layer, index))
