"""Forgeries: engines whose digests are right and whose contents are lies, each told by a number.

Every second one names a kernel for a group of a sound engine, until every kernel has been named for every group of a
kind that it serves. The others change parameters, shapes, packed weights, layouts, the limits of groups and what layers
read, some of it at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from tests.integration.forgeries.other_values import OtherValues

from dryfit.builder.kernels.packed_weights import drop_packed_weights
from dryfit.engine import engine_file
from dryfit.engine.plan import Operation, Plan
from dryfit.errors import DryfitError
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import HostLayout, Kernel

_MOST_CHANGES = 4


@attrs.frozen
class Forgery:
    """One of them.

    Attributes:
        plan: what the file holds.
        recipe: how it was made, in words.
        is_consistent: whether its packed weights are those of its layers, so that the references say what is right.
        reference: the network with all weights, which the plan may leave out.
    """

    plan: Plan
    recipe: str
    is_consistent: bool
    reference: Network


class Forger:
    """Makes forgeries of sound engines.

    Args:
        engines: name to the bytes of a file, with all weights in it.
    """

    def __init__(self, engines: Mapping[str, bytes]) -> None:
        self.kernels = {one.name: one for device in ("DLA", "GPU", "CPU") for one in registry.target(device).kernels}
        self._named: set[tuple[str, str]] = set()
        plans = {name: engine_file.load(data) for name, data in engines.items()}
        self._engines = {name: data for name, data in engines.items() if plans[name].operations}
        self.swaps = [swap for name in self._engines for swap in self._swaps_in(name, plans[name])]

    def _swaps_in(self, name: str, plan: Plan) -> Iterator[tuple[str, int, str]]:
        """The swaps of an engine: all kernels that serve a kind of layer, and each other kernel once for each kind."""
        layers = {layer.name: layer for layer in plan.network.layers}
        for index, operation in enumerate(plan.operations):
            kind = LayerGroup([layers[one] for one in operation.layers]).main.kind
            for kernel in self.kernels.values():
                if kind in kernel.kinds or (kernel.name, kind) not in self._named:
                    self._named.add((kernel.name, kind))
                    yield name, index, kernel.name

    def number_of(self, name: str, kernel: str) -> int:
        """The number of the forgery that names a kernel for the last group of an engine that it could be named for."""
        fitting = [swap for swap in self.swaps if swap[0] == name and swap[2] == kernel]
        return next(2 * half for half in range(len(self.swaps)) if self._swap(half) == fitting[-1])

    def _swap(self, half: int) -> tuple[str, int, str]:
        """A step without a common divisor comes to every swap, and far apart ones first."""
        step = next(step for step in range(int(len(self.swaps) * 0.618), 0, -1) if np.gcd(step, len(self.swaps)) == 1)
        return self.swaps[half * step % len(self.swaps)]

    def forge(self, number: int) -> Forgery:
        """The forgery of a number: the same whenever it is asked for."""
        rng = random.Random(number)  # noqa: S311  a forgery can be made again
        if number % 2 == 0:
            name, index, kernel = self._swap(number // 2)
            made = _Changes(name, engine_file.load(self._engines[name]), self.kernels, rng)
            made.name_kernel(index, kernel)
        else:
            name = rng.choice(sorted(self._engines))
            made = _Changes(name, engine_file.load(self._engines[name]), self.kernels, rng)
            made.make()
        return made.forgery()


class _Changes:
    """A plan that is changed step by step."""

    def __init__(self, name: str, plan: Plan, kernels: Mapping[str, Kernel], rng: random.Random) -> None:
        self._plan, self._kernels, self._rng, self._others = plan, kernels, rng, OtherValues(rng)
        self._operations: list[Operation] = list(plan.operations)
        self._placements = dict(plan.placements)
        self._layers = {layer.name: layer for layer in plan.network.layers}
        self._told = [name]
        self._is_consistent = True

    def make(self) -> None:
        """Some changes."""
        ways = (
            self._swap,
            self._change_parameter,
            self._change_parameter,
            self._change_parameter,
            self._change_input,
            self._join,
            self._join_and_swap,
            self._cut,
            self._change_weights,
            self._rewire,
            self._lay_out,
            self._reorder,
        )
        for _ in range(self._rng.randint(1, _MOST_CHANGES)):
            self._rng.choice(ways)()

    def forgery(self) -> Forgery:
        """What came of it. Half of them leave out what is packed, as engines do."""
        reference = self._plan.network
        plan = attrs.evolve(self._plan, operations=self._operations, placements=self._placements)
        if self._rng.random() < 0.5:
            plan = self._without_packed(plan)
        return Forgery(plan, "; ".join(self._told), self._is_consistent, reference)

    def _without_packed(self, plan: Plan) -> Plan:
        """The plan without what is packed, where a file can hold it: a copy, since the references need the weights."""
        try:
            plan = engine_file.load(engine_file.serialize(plan))
            layers = {layer.name: layer for layer in plan.network.layers}
            named = [(one, self._kernels[one.kernel]) for one in plan.operations]
            groups = [(LayerGroup([layers[name] for name in one.layers]), kernel) for one, kernel in named]
            drop_packed_weights(plan.network, groups)
        except DryfitError:
            return plan
        self._told.append("packed weights left out")
        return plan

    def name_kernel(self, index: int, kernel: str) -> None:
        """Name another kernel, with what it packs."""
        operation = self._operations[index]
        self._told.append(f"{kernel} for {operation.kernel} of {operation.name}")
        self._operations[index] = attrs.evolve(operation, kernel=kernel)
        self._pack(index)

    def _pack(self, index: int) -> None:
        """Pack the weights of an operation again, where its kernel can."""
        operation = self._operations[index]
        group = LayerGroup([self._layers[name] for name in operation.layers])
        try:
            weights = dict(self._kernels[operation.kernel].pack(group))
        except Exception:  # noqa: BLE001  it is asked for what it would never accept
            self._is_consistent = False
        else:
            self._operations[index] = attrs.evolve(operation, weights=weights)

    def _swap(self) -> None:
        index = self._rng.randrange(len(self._operations))
        main = LayerGroup([self._layers[name] for name in self._operations[index].layers]).main
        serving = [name for name, kernel in self._kernels.items() if main.kind in kernel.kinds]
        self.name_kernel(index, self._rng.choice(serving or sorted(self._kernels)))

    def _change_parameter(self) -> None:
        layer = self._rng.choice(self._plan.network.layers)
        fields = [field.name for field in layer.parameters()]
        if not fields:
            return
        name = self._rng.choice(fields)
        before = getattr(layer, name)
        after = self._others.value(before)
        self._try(
            lambda: setattr(layer, name, after), lambda: setattr(layer, name, before), f"{layer.kind}.{name} = {after}"
        )

    def _change_input(self) -> None:
        if not self._plan.network.inputs:
            return
        tensor = self._rng.choice(self._plan.network.inputs)
        before = tensor.shape
        after = self._others.value(before)
        self._try(
            lambda: setattr(tensor, "shape", after), lambda: setattr(tensor, "shape", before), f"{tensor.name}: {after}"
        )

    def _rewire(self) -> None:
        layer = self._rng.choice(self._plan.network.layers)
        earlier = [tensor for one in self._plan.network.layers[: layer.index] for tensor in one.outputs]
        given = [*earlier, *self._plan.network.inputs]
        if not layer.inputs or not given:
            return
        place, tensor = self._rng.randrange(len(layer.inputs)), self._rng.choice(given)
        before = layer.inputs[place]
        if before is not None:
            self._try(
                lambda: layer.set_input(place, tensor),
                lambda: layer.set_input(place, before),
                f"{layer.kind} reads {tensor.name} as {place}",
            )

    def _try(self, change: Any, undo: Any, recipe: str) -> None:
        """Change the network, if shapes follow from it, and pack all weights again, mostly."""
        try:
            change()
            self._plan.network.refresh_shapes()
        except Exception:  # noqa: BLE001  a network of this kind cannot be
            undo()
            self._plan.network.refresh_shapes()
            return
        self._told.append(recipe[:100])
        if self._rng.random() < 0.7:
            for index, operation in enumerate(self._operations):
                if operation.weights:
                    self._pack(index)
        else:
            self._is_consistent = self._is_consistent and not any(one.weights for one in self._operations)

    def _join(self) -> None:
        """Make one group of two that follow each other."""
        if len(self._operations) < 2:
            return
        index = self._rng.randrange(len(self._operations) - 1)
        first, second = self._operations[index : index + 2]
        # A dequantization may be in both.
        layers = tuple(dict.fromkeys((*first.layers, *second.layers)))
        self._told.append(f"{first.name} joined with {second.name}")
        self._operations[index : index + 2] = [attrs.evolve(first, layers=layers)]
        self._pack(index)

    def _join_and_swap(self) -> None:
        self._join()
        self._swap()

    def _cut(self) -> None:
        """Make two groups of one."""
        index = self._rng.randrange(len(self._operations))
        operation = self._operations[index]
        if len(operation.layers) < 2:
            return
        place = self._rng.randrange(1, len(operation.layers))
        parts = [attrs.evolve(operation, layers=part) for part in (operation.layers[:place], operation.layers[place:])]
        self._told.append(f"{operation.name} cut at {place}")
        self._operations[index : index + 1] = parts
        self._pack(index)
        self._pack(index + 1)

    def _change_weights(self) -> None:
        index = self._rng.randrange(len(self._operations))
        operation = self._operations[index]
        if not operation.weights:
            return
        name = self._rng.choice(sorted(operation.weights))
        array = self._others.array(operation.weights[name])
        self._operations[index] = attrs.evolve(operation, weights={**operation.weights, name: array})
        self._told.append(f"{name} of {operation.name}: {array.dtype} {array.shape}")
        self._is_consistent = False

    def _lay_out(self) -> None:
        layouts = [self._rng.choice(list(HostLayout)) for _ in self._placements]
        self._placements = {
            name: attrs.evolve(one, host_layout=layout)
            for (name, one), layout in zip(self._placements.items(), layouts, strict=True)
        }
        self._told.append("other layouts")

    def _reorder(self) -> None:
        index = self._rng.randrange(len(self._operations))
        layers = list(self._operations[index].layers)
        self._rng.shuffle(layers)
        self._told.append(f"{self._operations[index].name} in another order")
        self._operations[index] = attrs.evolve(self._operations[index], layers=tuple(layers))
        self._pack(index)
