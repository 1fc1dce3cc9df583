"""The network as it is built: a copy with what is known at build time already computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.placement.assign import ask
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError, DryfitError
from dryfit.network.copying import copy_layer
from dryfit.network.layer import Layer
from dryfit.network.layers.constant import Constant
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, Tensor, TensorLocation, TensorSpec
from dryfit.passes.canonical import canonical_pipeline
from dryfit.passes.pipeline import Pipeline
from dryfit.passes.specialise import specialise
from dryfit.reference.inference import infer_specs
from dryfit.short_text import printable


def profiles_of(config: BuilderConfig) -> list[OptimizationProfile]:
    """The optimization profiles of a config."""
    return [config.get_optimization_profile(index) for index in range(config.num_optimization_profiles)]


def canonicalise(network: Network, config: BuilderConfig, pipeline: Pipeline | None = None) -> Network:
    """A copy of the network, specialised for what all profiles agree on, without what need not be run.

    Weights are shared with the user's network, which stays as it is.

    Args:
        network: the user's.
        config: has the profiles.
        pipeline: the passes that it goes through; by default a new `canonical_pipeline`.

    Raises:
        BuildError: a pass fails.
        ConfigError: a profile does not fit the network, or has shapes that a layer cannot take.
        NetworkError: a layer's parameters do not fit the profiles' shapes.
    """
    profiles = profiles_of(config)
    for profile in profiles:
        profile.check(network)
    copy = specialise(network, _agreed_shapes(network, profiles))
    (pipeline or canonical_pipeline()).run(copy)
    for index, profile in enumerate(profiles):
        _require_shapes(copy, profile, index)
    return copy


def suggested_shape(tensor: Tensor) -> str:
    """The command line's option that gives a dynamic input a shape, complete.

    Extents that are not known are 1, but for height and width of pictures, which are 224.
    """
    rank = len(tensor.shape)
    extents = (
        extent if extent >= 0 else 224 if rank == 4 and axis >= 2 else 1 for axis, extent in enumerate(tensor.shape)
    )
    return f"--shape {printable(tensor.name, kept='')}={'x'.join(map(str, extents))}"


def _require_shapes(network: Network, profile: OptimizationProfile, index: int) -> None:
    """Refuse a profile whose shapes the network cannot take, such as that of a reshape to a fixed batch.

    Raises:
        ConfigError: names the layer.
    """
    inputs = {tensor.name for tensor in network.inputs}
    if profile.is_fixed or not inputs & profile.shapes.keys():
        return
    for place, word in enumerate(("minimum", "optimum", "maximum")):
        # Of no elements a reshape cannot tell the extent that it is to find.
        shapes = {
            name: tuple(extent or 1 for extent in triple[place])
            for name, triple in profile.shapes.items()
            if name in inputs
        }
        try:
            infer_specs(network, shapes)
        except DryfitError as error:
            raise ConfigError(
                f"The network cannot run with the {word} shapes of the optimization profile",
                where=f"network {network.name!r}, profile {index}",
                found=f"{', '.join(f'{name!r} {shape}' for name, shape in shapes.items())}: {error}",
                remedy="Import the model with these dimensions dynamic: what was computed from fixed ones at import "
                "stays as it is",
            ) from error


def require_profile(network: Network, config: BuilderConfig) -> None:
    """Refuse to build a network whose profiles leave open what dynamic inputs, or inputs that carry dimensions, take.

    Raises:
        ConfigError: names the inputs.
    """
    dynamic = [f"{tensor.name!r} {tensor.shape}" for tensor in network.inputs if -1 in tensor.shape]
    if dynamic and not config.num_optimization_profiles:
        shapes = " ".join(suggested_shape(tensor) for tensor in network.inputs if -1 in tensor.shape)
        raise ConfigError(
            "A network with dynamic inputs needs an optimization profile",
            where=f"network {network.name!r}",
            found=", ".join(dynamic),
            remedy="Call Builder.create_optimization_profile(), then set_shape(input, min, opt, max) for each of these "
            f"inputs, and add it to the config (on the command line: {shapes}, or a range --shape NAME=MIN:OPT:MAX)",
        )
    profiles = profiles_of(config)
    unstated = [
        f"{tensor.name!r} {tensor.dtype.name} {tensor.shape}"
        for tensor in network.inputs
        if tensor.is_shape_tensor
        and not (profiles and all(tensor.name in profile.shape_values for profile in profiles))
    ]
    if unstated:
        raise ConfigError(
            "Inputs that carry dimensions need their values stated in every optimization profile",
            where=f"network {network.name!r}",
            found=", ".join(unstated),
            remedy="Call set_shape_input(input, min, opt, max) on the profile for each of these inputs, and add the "
            "profile to the config (on the command line: --shape-values NAME=VALUES); or make them constants",
        )


def profile_shapes(network: Network, config: BuilderConfig) -> Sequence[ProfileShapes]:
    """The profiles as the engine keeps them.

    For each input that is still dynamic its shapes, and for each whose values were stated these, even where nothing
    reads them any more.
    """
    dynamic = [tensor.name for tensor in network.inputs if -1 in tensor.shape]
    profiles = profiles_of(config)
    carriers = [tensor.name for tensor in network.inputs if any(tensor.name in one.shape_values for one in profiles)]
    if not dynamic and not carriers:
        return []
    return [
        ProfileShapes(
            {name: profile.shapes[name] for name in dynamic},
            {name: profile.shape_values[name] for name in carriers if name in profile.shape_values},
        )
        for profile in profiles
    ]


def optimum_shapes(network: Network, config: BuilderConfig) -> dict[str, Shape]:
    """Input name to the shape that sizes are reckoned for: the optimum of the first profile; {} where there is none."""
    profiles = profiles_of(config)
    names = {tensor.name for tensor in network.inputs}
    return {name: optimum for name, (_, optimum, _) in profiles[0].shapes.items() if name in names} if profiles else {}


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
                return "" if verdict else f"{device} does not run it on codes: {verdict}"
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
