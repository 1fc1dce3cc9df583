"""dryfit as a backend of ONNX: what `onnx.backend.test` and other tools of the ecosystem run models through.

Example:
    >>> from dryfit.onnx import backend
    >>> outputs = backend.prepare(onnx.load("model.onnx")).run([image])
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from dryfit.building import Builder
from dryfit.engine.execution_context import ExecutionContext
from dryfit.errors import ExecutionError
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Shape
from dryfit.onnx.functions import names_from_outside
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.problems import ModelRefusedError
from dryfit.plugins import registry


def execution_context(network: Network, shapes: Mapping[str, Shape]) -> ExecutionContext:
    """An engine of the network for the CPU, ready to run at these input shapes.

    Raises:
        DryfitError: the engine cannot be built.
    """
    builder = Builder()
    config = builder.create_builder_config()
    config.default_device_type = registry.host().device
    profile = builder.create_optimization_profile()
    for tensor in network.inputs:
        if -1 in tensor.shape:
            profile.set_shape(tensor.name, shapes[tensor.name], shapes[tensor.name], shapes[tensor.name])
        if tensor.is_shape_tensor:
            count = math.prod(shapes[tensor.name])
            integers = np.iinfo(tensor.dtype.numpy)
            profile.set_shape_input(tensor.name, [integers.min] * count, [1] * count, [integers.max] * count)
    if profile:
        config.add_optimization_profile(profile)
    return builder.build_engine(network, config).create_execution_context()


class PreparedModel(BackendRep):
    """A model that is ready to run.

    Some operators take as inputs what a network fixes when it is built: axes to reduce, counts to pad. A model that
    leaves those open is imported when it runs, with the contents of these inputs.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        initializers = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [info.name for info in model.graph.input if info.name not in initializers]
        self._outputs = [info.name for info in model.graph.output]
        self._bound: tuple[str, ...] = ()
        self._network: Network | None = None
        self._last: tuple[dict[str, Shape], ExecutionContext] | None = None
        try:
            self._network = network_from_onnx(model)
        except ModelRefusedError as error:
            self._bound = inputs_to_bind(model, error)
            if not self._bound:
                raise

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:  # noqa: ARG002  the interface has them
        """The outputs in the graph's order, also by name.

        Args:
            inputs: arrays by name, a sequence in the order of the graph's inputs, or a single array.
            kwargs: not used.

        Raises:
            ExecutionError: the number of inputs differs from the graph's.
        """
        feeds = self._feeds(inputs)
        network = self._network or self._imported_with(feeds)
        used = {tensor.name: feeds[tensor.name] for tensor in network.inputs}
        outputs = self._context(network, {name: array.shape for name, array in used.items()}).run(used)
        results: tuple[Any, ...] = namedtupledict("Outputs", self._outputs)(*(outputs[name] for name in self._outputs))
        return results

    def _context(self, network: Network, shapes: dict[str, Shape]) -> ExecutionContext:
        """A context for these shapes; the last one is kept, but for a network that was imported for one run."""
        if network is not self._network:
            return execution_context(network, shapes)
        if self._last is None or self._last[0] != shapes:
            self._last = shapes, execution_context(network, shapes)
        return self._last[1]

    def _imported_with(self, feeds: Mapping[str, Array]) -> Network:
        """The network with inputs bound to these contents; folding can bring up more that have to be known."""
        bound = self._bound
        while True:
            try:
                return network_from_onnx(self._model, constants={name: feeds[name] for name in bound})
            except ModelRefusedError as error:
                more = inputs_to_bind(self._model, error)
                if not set(more) - set(bound):
                    raise
                bound = tuple(dict.fromkeys((*bound, *more)))

    def _feeds(self, inputs: Any) -> dict[str, Array]:
        if isinstance(inputs, Mapping):
            return {name: np.asarray(value) for name, value in inputs.items()}
        values = inputs if isinstance(inputs, Sequence) else [inputs]
        if len(values) != len(self._inputs):
            raise ExecutionError(
                "The number of inputs must match the model",
                found=len(values),
                allowed=", ".join(self._inputs),
                remedy="Pass one array per input",
            )
        return {name: np.asarray(value) for name, value in zip(self._inputs, values, strict=True)}


def inputs_to_bind(model: onnx.ModelProto, error: ModelRefusedError) -> tuple[str, ...]:
    """Graph inputs whose contents would let the model be imported; none where it is refused for another reason too."""
    if not all(problem.needs_constants for problem in error.problems):
        return ()
    producers = {output: node for node in _all_nodes(model.graph) for output in node.output}
    inputs = {info.name for info in model.graph.input}
    waiting = [
        _own_name(name, producers.keys() | inputs) for problem in error.problems for name in problem.needs_constants
    ]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name and name not in seen:
            seen.add(name)
            if name in producers:
                waiting.extend((*producers[name].input, *names_from_outside(producers[name])))
    return tuple(sorted(seen & inputs))


def _all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of its subgraphs."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _all_nodes(inner)


def _own_name(name: str, known: Collection[str]) -> str:
    """The name of a value without the path of the nodes whose subgraphs it is in."""
    parts = name.split("/")
    return next((one for place in range(len(parts)) if (one := "/".join(parts[place:])) in known), name)


class DryfitBackend(Backend):
    """ONNX's backend interface."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:  # noqa: ARG003
        """Import a model.

        Raises:
            ModelRefusedError: it cannot be imported; lists every node and why.
        """
        return PreparedModel(model)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Import a model and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,  # noqa: ARG003
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node: every name in its inputs is fed, and its outputs are returned."""
        names = [name for name in node.input if name]
        arrays = [np.asarray(value) for value in inputs]
        infos = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        opsets = [onnx.helper.make_opsetid(node.domain, kwargs["opset_version"])] if "opset_version" in kwargs else None
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "node", infos, outputs), opset_imports=opsets)
        return cls.prepare(model, device).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can run there: on the CPU."""
        return bool(Device(device).type == DeviceType.CPU)


prepare = DryfitBackend.prepare
run_model = DryfitBackend.run_model
run_node = DryfitBackend.run_node
supports_device = DryfitBackend.supports_device
