"""Exchanging the weights of a built engine: TensorRT's `IRefitter`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.builder.config.enumerations import member, whole_number
from dryfit.builder.refit.checks import check_compared_scales, check_digests, fitting_values
from dryfit.builder.refit.replay import replayed
from dryfit.engine.engine import Engine
from dryfit.engine.refit_record import RefitRecord, RefittableWeights, WeightsPlace
from dryfit.errors import ConfigError, NetworkError, UnknownNameError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.copying import copy_network
from dryfit.network.layer import Layer, with_bodies
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorLocation
from dryfit.network.weights_role import WeightsRole, set_weights

Array = np.ndarray[Any, Any]


class Refitter(KnownAttributes):
    """Collects new weights and dynamic ranges for an engine, and puts them into it at once.

    Weights go by name, or by the name of a layer and a role. The engine keeps the values of all others. Contexts that
    exist go on: each run that begins after the refit has all of the new weights.

    Args:
        engine: built with `REFIT`, `REFIT_IDENTICAL`, `REFIT_INDIVIDUAL` or `STRIP_PLAN`.
        logger: kept, as TensorRT's code expects it.

    Attributes:
        logger: the one that was given.

    Raises:
        ConfigError: the engine was built without such a flag.

    Example:
        >>> refitter = Refitter(engine)
        >>> refitter.set_weights("conv1", WeightsRole.KERNEL, np.zeros((8, 3, 3, 3), np.float32))
        True
        >>> refitter.refit_cuda_engine()
        True
    """

    logger: Any

    def __init__(self, engine: Engine, logger: Any = None) -> None:
        if engine.plan.refit is None:
            raise ConfigError(
                "The engine is not refittable",
                where=f"engine {engine.name!r}",
                found="an engine that was built without the flag REFIT",
                allowed="an engine that was built with it",
                remedy="Build it with config.set_flag(BuilderFlag.REFIT), or `dryfit build --refit`",
            )
        self.logger = logger
        self._engine = engine
        self._by_name = {one.name: one for one in engine.plan.refit.weights}
        self._by_place = {place: one for one in self._by_name.values() for place in one.places}
        self._given: dict[str, Array] = {}
        self._ranges: dict[str, tuple[float, float]] = {}
        self._validates = True
        self._max_threads = 1

    @property
    def network(self) -> Network:
        """The network that the engine was built from, with the weights that it has now; a stripped one has none.

        It is the engine's own, to be looked at.
        """
        return self._record.network

    # Weights ------------------------------------------------------------------------------------------------------

    def set_weights(self, layer_name: str, role: WeightsRole, weights: Array) -> bool:
        """Give new values for the weights of a layer. Where other layers share them, they get them too. True.

        Args:
            layer_name: in the network that the engine was built from.
            role: what the weights are to the layer.
            weights: of the same type and extents, or as many values in one axis. They are copied.

        Raises:
            UnknownNameError: the layer has no weights that can be exchanged in this role.
            NetworkError: type or number of values are others.
        """
        role = member(WeightsRole, role, "role of weights")
        found = self._by_place.get(WeightsPlace(layer_name, role))
        if found is None:
            self._require_outside(layer_name)
            known = [f"{place.layer} {place.role.name}" for place in self._by_place]
            raise UnknownNameError("exchangeable weights", f"{layer_name} {role.name}", known, where=self._where)
        return self._take(found, weights)

    def _require_outside(self, layer_name: str) -> None:
        """Refuse a layer inside a loop or conditional.

        Raises:
            NetworkError: it is inside one.
        """
        outside = self._record.network.layers
        owner = next((one for one in outside if layer_name in _names_inside(one)), None)
        if owner is not None:
            raise NetworkError(
                "Weights inside loops and conditionals cannot be refitted",
                where=f"{self._where}, layer {layer_name!r} inside {owner.where}",
                remedy="Build the engine again with the new weights",
            )

    def set_named_weights(self, name: str, weights: Array, location: TensorLocation = TensorLocation.HOST) -> bool:
        """Give new values for the weights of a name, as `set_weights` does. True.

        Args:
            name: of `get_all_weights()`.
            weights: of the same type and extents, or as many values in one axis. They are copied.
            location: arrays are in the host's memory, whatever is said here.

        Raises:
            UnknownNameError: no weights that can be exchanged have this name.
            NetworkError: type or number of values are others.
        """
        del location
        return self._take(self._weights(name), weights)

    def unset_named_weights(self, name: str) -> bool:
        """Forget the new values of a name; whether there were any.

        Raises:
            UnknownNameError: no weights that can be exchanged have this name.
        """
        return self._given.pop(self._weights(name).name, None) is not None

    def get_named_weights(self, name: str) -> Array:
        """The values that a refit would give the weights of a name: the new ones, or else the engine's. Read-only.

        Raises:
            UnknownNameError: no weights that can be exchanged have this name.
            NetworkError: the engine is stripped, and no new values were given.
        """
        weights = self._weights(name)
        given = self._given.get(name)
        if given is None and self._record.is_stripped:
            raise NetworkError(
                "The engine is stripped, and these weights have not been set yet",
                where=f"{self._where}, weights {name!r}",
                remedy="Set them with set_named_weights first",
            )
        array = self._record.values()[weights.places[0]] if given is None else given
        view = array.view()
        view.flags.writeable = False
        return view

    def get_weights_location(self, name: str) -> TensorLocation:
        """HOST: new values are arrays in the host's memory.

        Raises:
            UnknownNameError: no weights that can be exchanged have this name.
        """
        self._weights(name)
        return TensorLocation.HOST

    def get_weights_prototype(self, name: str) -> RefittableWeights:
        """Type, extents and places of the weights of a name.

        Raises:
            UnknownNameError: no weights that can be exchanged have this name.
        """
        return self._weights(name)

    def get_all(self) -> tuple[list[str], list[WeightsRole]]:
        """All weights that can be exchanged: names of layers, and beside them roles."""
        return _places(self._by_name.values())

    def get_all_weights(self) -> list[str]:
        """Names of all weights that can be exchanged."""
        return list(self._by_name)

    def get_missing(self) -> tuple[list[str], list[WeightsRole]]:
        """The weights without which no refit is possible: names of layers, and beside them roles.

        An engine that has its weights misses none, whatever is set: it keeps the values of all others. A stripped one
        misses all that have not been given.
        """
        return _places(self._missing)

    def get_missing_weights(self) -> list[str]:
        """Names of the weights of `get_missing`."""
        return [one.name for one in self._missing]

    # Dynamic ranges -----------------------------------------------------------------------------------------------

    def set_dynamic_range(self, tensor_name: str, range: tuple[float, float]) -> bool:
        """Give a new dynamic range for a tensor that has one. True.

        Raises:
            UnknownNameError: no tensor of this name has a dynamic range.
            NetworkError: it is no range; see `Tensor.dynamic_range`.
        """
        self._ranged(tensor_name)
        probe = Tensor(tensor_name, Network())
        probe.dynamic_range = range
        if probe.dynamic_range is not None:
            self._ranges[tensor_name] = probe.dynamic_range
        return True

    def get_dynamic_range(self, tensor_name: str) -> tuple[float, float]:
        """The range that a refit would give a tensor: the new one, or else the engine's.

        Raises:
            UnknownNameError: no tensor of this name has a dynamic range.
        """
        return self._ranges.get(tensor_name) or self._ranged(tensor_name)

    def get_tensors_with_dynamic_range(self) -> list[str]:
        """Names of the tensors of the network that have a dynamic range, stated or found by calibration."""
        return [tensor.name for tensor in self._record.network.tensors if tensor.dynamic_range is not None]

    # The refit ----------------------------------------------------------------------------------------------------

    def refit_cuda_engine(self) -> bool:
        """Put what was given into the engine, all of it or, where anything is wrong, nothing. True.

        Runs that have begun end with the old weights. What was given stays with the refitter.

        Raises:
            ConfigError: weights are missing; all are listed.
            NetworkError: the engine takes only the weights that it was built with, and these are others; or scales
                that had to be equal no longer are: both are named, with the pass that compared them.
            BuildError: with these weights or ranges the engine would be built otherwise; says where.
        """
        with self._engine.refit_lock:
            missing = self.get_missing_weights()
            if missing:
                raise ConfigError(
                    "Weights are missing",
                    where=self._where,
                    found=f"{len(missing)}: {', '.join(map(repr, missing[:10]))}{', ...' if len(missing) > 10 else ''}",
                    remedy="Set them with set_named_weights or set_weights, or all at once with OnnxParserRefitter",
                )
            record = self._record
            if self._validates:
                check_digests(record, self._given, self._where)
            network = self._new_network(record)
            check_compared_scales(record, network, self._where)
            plan = replayed(self._engine.plan, network, record.equal_scales)
            refitted = attrs.evolve(record, network=network, is_stripped=False)
            self._engine.adopt(attrs.evolve(plan, refit=refitted))
        return True

    @property
    def weights_validation(self) -> bool:
        """Whether weights of an engine for identical weights are compared with those that it was built with."""
        return self._validates

    @weights_validation.setter
    def weights_validation(self, validates: bool) -> None:
        self._validates = bool(validates)

    @property
    def max_threads(self) -> int:
        """How many threads a refit may use; it uses one."""
        return self._max_threads

    @max_threads.setter
    def max_threads(self, count: int) -> None:
        count = whole_number(count, "number of threads")
        if count < 1:
            raise ConfigError(
                "A refit must have at least one thread", where="max_threads", found=count, remedy="Set it to 1 or more"
            )
        self._max_threads = count

    # Inside -------------------------------------------------------------------------------------------------------

    @property
    def _record(self) -> RefitRecord:
        record = self._engine.plan.refit
        if record is None:
            raise ConfigError(
                "The engine's weights can no longer be exchanged",
                where=self._where,
                remedy="Load the engine file again and create a new Refitter",
            )
        return record

    @property
    def _where(self) -> str:
        return f"engine {self._engine.name!r}"

    @property
    def _missing(self) -> Sequence[RefittableWeights]:
        if not self._record.is_stripped:
            return []
        return [one for one in self._by_name.values() if one.name not in self._given]

    def _weights(self, name: str) -> RefittableWeights:
        if name not in self._by_name:
            raise UnknownNameError("exchangeable weights", name, self._by_name, where=self._where)
        return self._by_name[name]

    def _take(self, weights: RefittableWeights, values: Array) -> bool:
        self._given[weights.name] = fitting_values(weights, values, self._where)
        return True

    def _ranged(self, name: str) -> tuple[float, float]:
        tensor = self._record.network.find_tensor(name)
        if tensor is None or tensor.dynamic_range is None:
            known = self.get_tensors_with_dynamic_range()
            raise UnknownNameError("tensor with a dynamic range", name, known, where=self._where)
        return tensor.dynamic_range

    def _new_network(self, record: RefitRecord) -> Network:
        """The user's network with the new weights and ranges."""
        network = copy_network(record.network)
        layers = {layer.name: layer for layer in network.layers}
        for name, values in self._given.items():
            for place in self._by_name[name].places:
                set_weights(layers[place.layer], place.role, values)
        for name, bounds in self._ranges.items():
            network.tensor(name).dynamic_range = bounds
        network.refresh_shapes()
        return network


def _places(weights: Iterable[RefittableWeights]) -> tuple[list[str], list[WeightsRole]]:
    places = [place for one in weights for place in one.places]
    return [place.layer for place in places], [place.role for place in places]


def _names_inside(layer: Layer) -> set[str]:
    return {inner.name for body in layer.bodies for inner in with_bodies(body.layers)}
