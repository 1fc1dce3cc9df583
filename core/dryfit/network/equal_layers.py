"""What holds for a layer holds for every layer that is equal to it, so that devices are asked once about equal layers.

Large networks repeat few layers: a chain of ten thousand has a dozen that differ in more than their names and places.
What is asked about a layer, the rules of a device or the kernels of the host, is a function that anybody may have
written, and nobody knows what it looks at. So it is asked about a stand-in first: an object of the layer's own class
that lacks what tells equal layers apart, which is their names, positions and neighbours. Where the function reads any
of that, it is noticed, nothing is kept, and the function is asked about each layer itself. What it found without is
kept for all layers with the same key.

Layers of one network mostly differ in their weights, and most functions look at no more of them than their shape. So
a stand-in may have outlines of its weights, which lack the elements; then layers with other weights are equal, too.

No function has to declare anything, and none can get an answer that it would not have given: a stand-in has what it
was made of, or says that it lacks it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorLocation, TensorSpec

AnswerT = TypeVar("AnswerT")

_OWN_TO_ONE_LAYER = frozenset({"name", "metadata", "onnx_nodes", "inputs", "outputs", "network", "index"})
"""What equal layers do not have in common; inputs and outputs are stood in for by equal ones."""
_MOST_INPUTS = 16
"""Layers with more are asked about each. Our choice: a concatenation of thousands is joined to each of what it reads in
turn, and its key alone would then cost more than all answers."""
_COMPARED_BY_VALUE = frozenset({bool, int, str, bytes})


class LookedBeyondError(Exception):
    """A function reads what its stand-in lacks."""


class Watch:
    """Notices what stand-ins are asked for and lack.

    Attributes:
        looked_beyond: whether anything was, also where the function caught the error.
    """

    def __init__(self) -> None:
        self.looked_beyond = False

    def lacks(self, name: str) -> NoReturn:
        """Note that an attribute was read that the stand-in lacks.

        Raises:
            LookedBeyondError: always.
        """
        self.looked_beyond = True
        raise LookedBeyondError(name)

    def alone(self, ask: Callable[[], AnswerT]) -> tuple[AnswerT | None, bool]:
        """(what a function answers about stand-ins, whether that holds for every equal layer)."""
        self.looked_beyond = False
        try:
            answer = ask()
        except (Exception, SystemExit):  # noqa: BLE001  a stranger's function; it is asked about the layer itself next
            return None, False
        return answer, not self.looked_beyond


class Outline:
    """What is known of an array of weights that stands for others: all but its elements.

    It passes for an array, and says so where anything but the attributes here is asked of it.
    """

    def __init__(self, array: np.ndarray[Any, Any], watch: Watch) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self.ndim, self.size, self.nbytes = array.ndim, array.size, array.nbytes
        self._watch = watch

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # what `isinstance` asks
        return np.ndarray

    def __getattr__(self, name: str) -> NoReturn:
        self._watch.lacks(name)


def _lacking(name: str) -> Any:
    def lacks(outline: Outline, *arguments: object) -> NoReturn:
        del arguments
        outline._watch.lacks(name)  # noqa: SLF001  a method of its class

    return lacks if callable(getattr(np.ndarray, name)) else property(lacks)


for _name in vars(np.ndarray):
    if _name.startswith("__") and _name not in {"__new__", *vars(Outline)}:
        setattr(Outline, _name, _lacking(_name))


class LayerKeys:
    """Keys that are the same for layers, and for groups of layers, that are equal but for names and neighbours.

    They are of layers as they are when they are first asked about: of networks that do not change meanwhile.

    Arrays and other objects count as equal where they are the same object. They are kept as long as the keys are, so
    that no other object gets the identity of one of them.

    Args:
        outlines: whether weights count as equal where their shapes and types are, as in stand-ins with outlines.
    """

    def __init__(self, *, outlines: bool = False) -> None:
        self._outlines = outlines
        self._layers: dict[int, object] = {}
        self._kept: dict[int, object] = {}
        self._numbers: dict[Hashable, int] = {}
        self._parameters_of: dict[Hashable, Callable[[dict[str, Any]], tuple[Any, ...]] | None] = {}
        self._of_parameters: dict[tuple[int, ...], int] = {}
        self._of_layer: dict[int, int | None] = {}
        self._of_tensor: dict[int, int] = {}

    def of_another_network(self) -> LayerKeys:
        """Keys that are the same for layers of another network, too. Its layers and tensors are not kept here."""
        other = LayerKeys(outlines=self._outlines)
        other._kept, other._numbers = self._kept, self._numbers
        other._parameters_of, other._of_parameters = self._parameters_of, self._of_parameters
        return other

    def of(self, layers: Sequence[Layer], specs: Mapping[str, TensorSpec] | None = None) -> Hashable | None:
        """The key of layers as they are connected to each other; None where no stand-ins can be made of them.

        Args:
            layers: of one network.
            specs: of the tensors where a function is given them beside the layers.
        """
        network = layers[0].network
        if network is None:
            return None
        network.refresh_shapes()
        key: list[Hashable] = [network.flags, network.quantize_method]
        for layer in layers:
            own = self._of_layer.get(id(layer), -1)
            if own == -1:
                self._layers[id(layer)] = layer
                is_long = len(layer.inputs) > _MOST_INPUTS
                own = self._of_layer[id(layer)] = None if is_long else self._own(layer, specs)
            if own is None:
                return None
            key.append(own)
        if len(layers) > 1 or len(layers[0].inputs) > 1:  # which of the tensors are the same
            tensors = [id(tensor) for layer in layers for tensor in (*layer.inputs, *layer.outputs)]
            places = dict(zip(tensors, range(len(tensors)), strict=True))
            key += map(places.__getitem__, tensors)
        return tuple(key)

    def _own(self, layer: Layer, specs: Mapping[str, TensorSpec] | None) -> int | None:
        """What a layer and its tensors are, whatever they are connected to; None where it answers for what it lacks."""
        parameters = self._parameters(layer)
        if parameters is None:
            return None
        key: list[Hashable] = [parameters, len(layer.inputs)]
        for tensor in (*layer.inputs, *layer.outputs):
            if tensor is None:
                key.append(None)
                continue
            number = self._of_tensor.get(id(tensor))
            if number is None:
                self._layers[id(tensor)] = tensor
                number = self._of_tensor[id(tensor)] = self.number(self._tensor(tensor))
            key.append(number)
            if specs is not None:
                given = specs[tensor.name]
                key.append(given is vars(tensor)["_spec"] or self._spec(given))
        return self.number(tuple(key))

    def _parameters(self, layer: Layer) -> int | None:
        """A number of a layer's kind and parameters; None as for `_own`.

        Most layers have the very objects of others as parameters, which then need not be looked into.
        """
        state = vars(layer)
        kind = (type(layer), *state)
        if kind not in self._parameters_of:
            self._parameters_of[kind] = _getter(layer)
        parameters_of = self._parameters_of[kind]
        if parameters_of is None:
            return None
        values = parameters_of(state)
        same = (id(parameters_of), *[0 if type(value) is dict and not value else id(value) for value in values])
        number = self._of_parameters.get(same)
        if number is None:
            number = self._of_parameters[same] = self.number((kind, *map(self.value, values)))
            for value in values:
                self.identity(value)
        return number

    def number(self, key: Hashable) -> int:
        """A number that stands for a key, and is compared faster."""
        return self._numbers.setdefault(key, len(self._numbers))

    def identity(self, value: object) -> int:
        """What stands for an object that counts as equal to itself only."""
        self._kept[id(value)] = value
        return id(value)

    def value(self, value: Any) -> Hashable:
        """What stands for a parameter: equal numbers, texts and collections of them are the same."""
        kind = type(value)
        if value is None:
            return None
        if kind in _COMPARED_BY_VALUE:
            return kind, value
        if kind is float:
            return kind, repr(value)  # tells 0.0 and -0.0 apart
        if kind is tuple:
            return kind, *map(self.value, value)
        if kind is frozenset:
            return kind, frozenset(map(self.value, value))
        if kind is dict and not value:
            return kind
        if kind is dict:
            return kind, *((self.value(name), self.value(one)) for name, one in value.items())
        if kind is np.ndarray and self._outlines:
            return kind, value.shape, value.dtype
        return self.identity(value)

    def _spec(self, spec: TensorSpec | None) -> Hashable:
        if spec is None:
            return None
        return spec.shape, spec.dtype, None if spec.value is None else self.identity(spec.value)

    def _tensor(self, tensor: Tensor) -> Hashable:
        own = vars(tensor)
        bounds, producer = own["_dynamic_range"], tensor.producer
        return (
            self._spec(own["_spec"]),
            own["io_dtype"],
            None if bounds is None else repr(bounds),
            own["_allowed_formats"],
            own["location"] is TensorLocation.HOST,
            tuple(own["dimension_names"].items()),
            type(producer) if producer is not None else None,
            tensor.is_network_output,
        )


def _getter(layer: Layer) -> Callable[[dict[str, Any]], tuple[Any, ...]] | None:
    """What takes the parameters out of the attributes of a layer like this one; None where it answers for others."""
    if type(layer).__getattr__ is not KnownAttributes.__getattr__:  # type: ignore[attr-defined]
        return None
    return operator.itemgetter(*(name for name in vars(layer) if name not in _OWN_TO_ONE_LAYER))


class StandIns:
    """Layers as their keys tell them: connected to each other, and to nothing else.

    Args:
        layers: those that are stood in for, of one network, in an order in which they can run.
        specs: of their tensors; where they are given, tensors have names, made up, by which functions find their specs.
        outlines: whether they have outlines in place of their weights.

    Attributes:
        watch: notices what they lack.
        layers: the stand-ins.
        specs: name to spec of the tensors; empty unless they have names.
    """

    def __init__(
        self, layers: Sequence[Layer], specs: Mapping[str, TensorSpec] | None = None, *, outlines: bool = False
    ) -> None:
        self.watch = Watch()
        self._outlines = outlines
        self.specs: dict[str, TensorSpec] = {}
        self._given = specs
        self._outputs: set[int] = set()
        self._tensors: dict[int, Tensor] = {}
        own = layers[0].network
        self._network = self._made(
            Network, _flags=own.flags, quantize_method=own.quantize_method, _stale_from=None, is_output=self._is_output
        )
        self.layers = [self._layer(layer) for layer in layers]

    def _made(self, cls: type[Any], **state: Any) -> Any:
        """An object of a class with these attributes and no others."""
        made = object.__new__(cls)
        vars(made).update(state, _watch=self.watch)
        return made

    def _layer(self, layer: Layer) -> Layer:
        state = {name: value for name, value in vars(layer).items() if name not in _OWN_TO_ONE_LAYER}
        copied: dict[str, Any] = {name: dict(value) for name, value in state.items() if type(value) is dict}
        if self._outlines:
            arrays = {name: value for name, value in state.items() if type(value) is np.ndarray}
            copied |= {name: Outline(array, self.watch) for name, array in arrays.items()}
        made: Layer = self._made(type(layer), **{**state, **copied}, network=self._network)
        inputs = [None if tensor is None else self._tensor(tensor, None) for tensor in layer.inputs]
        vars(made).update(inputs=inputs, outputs=[self._tensor(tensor, made) for tensor in layer.outputs])
        return made

    def _tensor(self, tensor: Tensor, producer: Layer | None) -> Tensor:
        if id(tensor) in self._tensors:
            return self._tensors[id(tensor)]
        if producer is None and tensor.producer is not None:
            producer = self._made(type(tensor.producer))  # nothing but its class is known
        own = vars(tensor)
        shared = {name: own[name] for name in ("_spec", "io_dtype", "_dynamic_range", "_allowed_formats", "location")}
        names = dict(own["dimension_names"])
        made: Tensor = self._made(Tensor, **shared, dimension_names=names, producer=producer, network=self._network)
        if self._given is not None:
            name = f"tensor {len(self._tensors)}"
            vars(made)["name"] = name
            self.specs[name] = self._given[tensor.name]
        self._tensors[id(tensor)] = made
        if tensor.is_network_output:
            self._outputs.add(id(made))
        return made

    def _is_output(self, tensor: Tensor) -> bool:
        return id(tensor) in self._outputs
