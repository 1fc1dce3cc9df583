"""The sides of a comparison: the same network on another device or software version, or by its definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import REFIT_FLAGS, BuilderFlag, EngineCapability
from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.builder.config.settings import config_from_settings
from dryfit.building import Builder
from dryfit.engine.operation_runner import OperationRunner
from dryfit.engine.plan import Plan
from dryfit.engine.stored_tensors import StoredTensor, stored_tensors
from dryfit.errors import BuildError, ConfigError
from dryfit.network.copying import copy_network, with_network_types
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.quantization.int8_steps import DynamicRange
from dryfit.quantization.range_sharing import floating_point_network
from dryfit.reference.executor import run_reference
from dryfit.target.kernels import Array

Feeds = Mapping[str, Array]

DEFINITION = "fp32"
"""The side that computes what the network means, by the references, in the types that the model has."""


class SideValues:
    """The tensors of one run of a side, in all stored versions."""

    def __init__(self) -> None:
        self._versions: dict[str, list[tuple[StoredTensor, Array]]] = {}

    def add(self, tensor: StoredTensor, array: Array) -> None:
        """Add a version of a tensor."""
        self._versions.setdefault(tensor.of, []).append((tensor, array))

    def real(self, like: StoredTensor) -> Array | None:
        """Return the real values of a tensor of the user's network; None if the side does not have them.

        Of several versions, the one with the same role by its name is preferred, then one of the requested type, then
        the one that other layers read.
        """
        versions = self._versions.get(like.of, [])
        alike = [one for one in versions if one[0].name == like.name]
        of_type = [one for one in versions if one[0].dtype is like.dtype]
        named = [one for one in versions if one[0].name == like.of]
        chosen = [*alike, *of_type, *named, *versions]
        return chosen[0][0].real(chosen[0][1]) if chosen else None


class Side(Protocol):
    """A side of a comparison."""

    @property
    def name(self) -> str:
        """Name as requested."""
        ...

    @property
    def plan(self) -> Plan | None:
        """Plan of the engine; None for the definition."""
        ...

    def values(self, feeds: Feeds) -> SideValues:
        """Return every tensor that the side stores in one run."""
        ...


class DefinitionSide:
    """The network executed by the reference implementation, layer by layer.

    Args:
        network: the user's network. If it is not explicitly quantized, requests for other types are ignored, and an
            INT8 input with a range is replaced by the real values that it represents.
    """

    def __init__(self, network: Network) -> None:
        self.name = DEFINITION
        self.plan = None
        self._network = definition_of(network)
        self._scales = {
            tensor.name: DynamicRange(*tensor.dynamic_range).scale
            for tensor in network.inputs
            if tensor.dtype is DataType.INT8
            and self._network.tensor(tensor.name).dtype is not DataType.INT8
            and tensor.dynamic_range is not None
        }

    def values(self, feeds: Feeds) -> SideValues:
        """Return every tensor of the network."""
        found = SideValues()

        def observe(tensor: Tensor, array: Array) -> None:
            found.add(StoredTensor(tensor.name, tensor.name, tensor.dtype), array)

        run_reference(self._network, {name: self._computed_on(name, array) for name, array in feeds.items()}, observe)
        return found

    def _computed_on(self, name: str, array: Array) -> Array:
        """Return an input of the caller in the type in which the network computes on it."""
        if name in self._scales:
            return array.astype(np.float32) * np.float32(self._scales[name])
        return array.astype(self._network.tensor(name).dtype.numpy, copy=False)


class EngineSide:
    """An engine whose operations can be inspected individually.

    Args:
        name: name as requested.
        plan: plan of the engine.
        declared: type of each tensor of the user's network, by name.
        num_threads: number of threads; None for one per CPU.

    Attributes:
        tensors: the engine's tensors that represent the user's, by name.
        fixed: names of the engine's tensors that do not depend on an input, such as dequantized weights.
    """

    def __init__(self, name: str, plan: Plan, declared: Mapping[str, DataType], num_threads: int | None) -> None:
        plan.network.refresh_shapes()
        self.name = name
        self.plan = plan
        self.tensors = stored_tensors(plan.network, declared)
        self.fixed = _fixed_tensors(plan.network)
        self._num_threads = num_threads
        self._runners: dict[tuple[tuple[str, tuple[int, ...]], ...], OperationRunner] = {}

    def runner(self, feeds: Feeds) -> OperationRunner:
        """Return a runner of its operations for inputs of these shapes."""
        shapes = {name: array.shape for name, array in feeds.items()}
        key = tuple(sorted(shapes.items()))
        if key not in self._runners:
            self._runners[key] = OperationRunner(self.plan, shapes, self._num_threads)
        return self._runners[key]

    def arrays(self, feeds: Feeds) -> dict[str, Array]:
        """Return every tensor that the engine stores in one run, in stored form."""
        runner = self.runner(feeds)
        arrays = {**runner.known, **feeds}
        for one in runner.operations:
            arrays |= runner.run(one, arrays)
        return arrays

    def values(self, feeds: Feeds) -> SideValues:
        """Return every tensor that the engine stores, including the inputs."""
        found = SideValues()
        for name, array in self.arrays(feeds).items():
            if name in self.tensors:
                found.add(self.tensors[name], array)
        return found


def _fixed_tensors(network: Network) -> frozenset[str]:
    """Return the names of the tensors that do not depend on an input."""
    found: set[str] = set()
    for layer in network.layers:
        if all(tensor is None or tensor.name in found for tensor in layer.inputs):
            found.update(tensor.name for tensor in layer.outputs)
    return frozenset(found)


def definition_of(network: Network) -> Network:
    """Return the network whose reference results an engine should reproduce."""
    return with_network_types(network) if is_explicit(network) else floating_point_network(network)


def compared_sides(
    names: Sequence[str],
    network: Network,
    plan: Plan,
    declared: Mapping[str, DataType],
    num_threads: int | None = None,
) -> list[Side]:
    """Return the sides with these names.

    Args:
        names: `fp32`, a device, or a device with a software version, such as `DLA@8.6`; case-insensitive.
        network: the user's network, with the ranges that the engine was built with.
        plan: plan of the engine to compare.
        declared: type of each tensor of the user's network, by name.
        num_threads: number of threads per engine.

    Raises:
        UnknownNameError: No installed package provides the device.
        ConfigError: A name is duplicated, or the device does not have the software version.
        BuildError: The network cannot be built for the device.
    """
    if len(set(names)) != len(names) or not names:
        raise ConfigError(
            "At least one side to compare with is required, and each must be named once",
            where="--against",
            found=", ".join(names),
            remedy="Name one or more sides, each once, such as --against fp32,gpu",
        )
    sides: list[Side] = []
    for name in names:
        if name.lower() == DEFINITION:
            sides.append(DefinitionSide(network))
        else:
            sides.append(EngineSide(name, _plan_on(name, network, plan), declared, num_threads))
    return sides


def _plan_on(name: str, network: Network, plan: Plan) -> Plan:
    """Return the plan of a network on another device, or with another software version of the same device."""
    device, _, software = name.partition("@")
    work = copy_network(network)
    config = config_from_settings(_settings_for(work, plan.settings), work)
    for flag in (*REFIT_FLAGS, BuilderFlag.DIRECT_IO):
        config.clear_flag(flag)
    config.engine_capability = EngineCapability.STANDARD
    target = registry.target(device)
    if target.device != config.default_device_type:
        _move(config, target.device, work)
    if software:
        config.set_software(target.device, software)
    try:
        return Builder().build_plan(work, config)
    except BuildError as error:
        raise BuildError(
            "The network cannot be built for the side to compare with",
            where=f"--against {name}",
            found=str(error),
            remedy="Compare with another device, or with fp32",
        ) from error


def _settings_for(network: Network, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return an engine's settings without those of layers that passes removed from the network."""
    names = {layer.name for layer in network.layers}
    of_layers = {
        key: {name: value for name, value in settings[key].items() if name in names}
        for key in ("device_types", "kernels")
        if isinstance(settings.get(key), Mapping)
    }
    return {**settings, **of_layers}


def _move(config: BuilderConfig, device: str, network: Network) -> None:
    """Move everything to another device: settings of layers, kernels and formats applied to the first device only."""
    config.default_device_type = device
    config.allow_fallback(None)
    for layer in network.layers:
        config.reset_device_type(layer)
        config.reset_kernel(layer)
    for tensor in network.tensors:
        tensor.allowed_formats = None
