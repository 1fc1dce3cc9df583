"""What the optimization profiles of a config say of a network: the shapes that it is built for."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, Tensor
from dryfit.short_text import printable


def profiles_of(config: BuilderConfig) -> list[OptimizationProfile]:
    """The optimization profiles of a config."""
    return [config.get_optimization_profile(index) for index in range(config.num_optimization_profiles)]


def suggested_shape(tensor: Tensor) -> str:
    """The command line's option that gives a dynamic input a shape, complete.

    Extents that are not known are 1, but for height and width of pictures, which are 224.
    """
    rank = len(tensor.shape)
    extents = (
        extent if extent >= 0 else 224 if rank == 4 and axis >= 2 else 1 for axis, extent in enumerate(tensor.shape)
    )
    return f"--shape {printable(tensor.name, kept='')}={'x'.join(map(str, extents))}"


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
