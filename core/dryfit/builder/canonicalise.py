"""The network as it is built: a copy with what is known at build time already computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.mode_rules import check_modes
from dryfit.builder.config.optimization_profile import OptimizationProfile, profiles_of
from dryfit.builder.placement.assign import ask
from dryfit.errors import ConfigError, DryfitError
from dryfit.network.copying import with_network_types
from dryfit.network.layer import Layer, with_bodies
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.network.tensor import Shape, Tensor, TensorLocation, TensorSpec
from dryfit.network.verify import check
from dryfit.passes.canonical import canonical_pipeline, specialise
from dryfit.passes.findings import PassFindings
from dryfit.passes.quantized_operators.operator_of_group import chosen_methods
from dryfit.passes.watched_tensors import WatchedNetwork, watched, without_known_assertions
from dryfit.reference.inference import infer_specs


@frozen(eq=False)
class CanonicalNetwork:
    """A network after the passes, and what they found.

    Attributes:
        network: a copy of the user's, with what is known at build time already computed.
        own_devices: name of each layer to which the user gave a device, to that device.
        passes: names of the passes that it went through, in order.
        found: what became of its layers.
        watched: assertions and debug tensors.
    """

    network: Network
    own_devices: Mapping[str, str]
    passes: Sequence[str]
    found: PassFindings
    watched: WatchedNetwork

    def lines(self) -> Iterator[str]:
        """What a dump says of it."""
        yield network_text(self.network)

    @property
    def warnings(self) -> Sequence[str]:
        """Plugin layers that take other quantized tensors, layers left in real numbers, and settings without effect."""
        return [
            *self.found.claims.warnings,
            *map(str, self.found.operators.left),
            *_without_effect(self.network, self.own_devices),
        ]

    @property
    def causes(self) -> Mapping[str, str]:
        """Name of each layer that took the place of a quantized group to why it is there."""
        return {**self.found.claims.causes, **self.found.operators.causes}


def _without_effect(network: Network, own_devices: Mapping[str, str]) -> Iterator[str]:
    """Settings of layers inside loops and conditionals: these run as a whole, in the types of the network."""
    for outer in (layer for layer in network.layers if layer.bodies):
        inside = [layer for body in outer.bodies for layer in with_bodies(body.layers)]
        for setting, names in (
            ("precision", [layer.name for layer in inside if layer.precision is not None]),
            ("device", [layer.name for layer in inside if layer.name in own_devices]),
        ):
            if names:
                yield (
                    f"The {setting} of {', '.join(map(repr, names))} has no effect: the layers inside "
                    f"{outer.kind} {outer.name!r} run with it, in the types of the network"
                )


def verified(network: Network, config: BuilderConfig) -> list[ConfigError]:
    """Refuse a network that is wrong, or does not go with the config; returns what is told beside the placement.

    Raises:
        NetworkError: the network is wrong; all problems are listed.
        ConfigError: network and config do not go together.
        UnknownNameError: it asks for a quantize method that nobody brings.
    """
    check(network)
    chosen_methods(network)
    return check_modes(network, config)


def canonicalise(network: Network, config: BuilderConfig) -> CanonicalNetwork:
    """A copy of the network, specialised for what all profiles agree on, without what need not be run.

    Weights are shared with the user's network, which stays as it is.

    Raises:
        BuildError: a pass fails.
        ConfigError: a profile does not fit the network, or has shapes that a layer cannot take.
        NetworkError: a layer's parameters do not fit the profiles' shapes.
    """
    own_devices = config.explicit_device_types(network)
    typed, profiles = with_network_types(network), profiles_of(config)
    for profile in profiles:
        profile.check(typed)
    plain = watched(typed)
    copy = specialise(plain.network, _agreed_shapes(typed, profiles))
    plain = without_known_assertions(plain, copy)
    pipeline = canonical_pipeline(CodesOnDevices(config, own_devices))
    found = pipeline.run(copy).found
    for index, profile in enumerate(profiles):
        _require_shapes(copy, profile, index)
    copies = {layer.name: found.rewrites.origin(layer.name) for layer in copy.layers}
    own_devices |= {name: own_devices[origin] for name, origin in copies.items() if origin in own_devices}
    return CanonicalNetwork(copy, own_devices, pipeline.names, found, plain)


def _require_shapes(network: Network, profile: OptimizationProfile, index: int) -> None:
    """Refuse a profile whose shapes the network cannot take, such as that of a reshape to a fixed batch.

    Raises:
        ConfigError: names the layer.
    """
    inputs = {tensor.name: tensor.shape for tensor in network.inputs}
    if profile.is_fixed or not inputs.keys() & profile.shapes.keys():
        return
    for place, word in enumerate(("minimum", "optimum", "maximum")):
        # Of no elements a reshape cannot tell the extent that it is to find.
        shapes = {
            name: tuple(
                extent if declared >= 0 else extent or 1
                for extent, declared in zip(triple[place], inputs[name], strict=True)
            )
            for name, triple in profile.shapes.items()
            if name in inputs
        }
        try:
            infer_specs(network, shapes)
        except DryfitError as error:
            raise ConfigError(
                f"The network does not support the {word} shapes of the optimization profile",
                where=f"network {network.name!r}, profile {index}",
                found=f"{', '.join(f'{name!r} {shape}' for name, shape in shapes.items())}: {error}",
                remedy="Import the model with these dimensions dynamic; values computed from fixed ones at import "
                "do not change",
            ) from error


def _agreed_shapes(network: Network, profiles: Sequence[OptimizationProfile]) -> dict[str, Shape]:
    """For each dynamic input its shape with the extents for which all profiles state one value."""
    agreed: dict[str, Shape] = {}
    for tensor in network.inputs:
        ranges = [profile.shapes[tensor.name] for profile in profiles if tensor.name in profile.shapes]
        if tensor.location is TensorLocation.HOST or not ranges or -1 not in tensor.shape:
            continue
        stated = [set(extents) for extents in zip(*(shape for triple in ranges for shape in triple), strict=True)]
        agreed[tensor.name] = tuple(extents.pop() if len(extents) == 1 else -1 for extents in stated)
    return agreed


class CodesOnDevices:
    """The judge of a build.

    Args:
        config: default and fallback device, platforms.
        own_devices: layer name to device, for the layers that have one of their own.
    """

    def __init__(self, config: BuilderConfig, own_devices: Mapping[str, str]) -> None:
        self._config = config
        self._own_devices = own_devices

    def __call__(self, layer: Layer, specs: Sequence[TensorSpec | None], real: Sequence[TensorSpec | None]) -> str:
        """Why the device that runs a layer in real numbers does not run it on codes; "" where it does."""
        own = self._own_devices.get(layer.name)
        devices = [own or self._config.default_device_type, self._config.fallback_device]
        for device in filter(None, dict.fromkeys(devices)):
            if ask(_alone(layer, real), device, self._config, self._own_devices):
                verdict = ask(_alone(layer, specs), device, self._config, self._own_devices)
                return "" if verdict else f"{device} does not support it on quantized codes: {verdict}"
        return ""


def _alone(layer: Layer, specs: Sequence[TensorSpec | None]) -> Layer:
    """A copy of a layer in a network of its own."""
    network = Network("question")
    inputs = [None if spec is None else _source(network, f"input {index}", spec) for index, spec in enumerate(specs)]
    return network.add_layer(copy_layer(layer), inputs)


def _source(network: Network, name: str, spec: TensorSpec) -> Tensor:
    if spec.value is None:
        return network.add_input(name, spec.dtype, spec.shape)
    constant = network.add_layer(Constant(name=name, shape=spec.shape, weights=spec.value), [])
    return constant.outputs[0]
