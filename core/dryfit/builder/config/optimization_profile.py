"""Optimization profiles: the shapes that an engine is built for, and their check against a network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dryfit.engine.plan import ProfileShapes
from dryfit.errors import ConfigError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, Tensor, fits_declared
from dryfit.short_text import printable

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig

ShapeRange = tuple[Shape, Shape, Shape]
"""Minimum, optimum and maximum, extent by extent."""


class OptimizationProfile(KnownAttributes):
    """The minimum, optimum and maximum shape of each dynamic input; TensorRT's `IOptimizationProfile`.

    For an input that carries dimensions, such as the target shape of a reshape, also set its values: `set_shape_input`.

    Example:
        >>> profile = OptimizationProfile()
        >>> profile.set_shape("x", (1, 3, 224, 224), (4, 3, 224, 224), (8, 3, 224, 224))
        >>> profile.get_shape("x")
        [(1, 3, 224, 224), (4, 3, 224, 224), (8, 3, 224, 224)]
    """

    def __init__(self) -> None:
        self._shapes: dict[str, ShapeRange] = {}
        self._values: dict[str, ShapeRange] = {}

    def set_shape(self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:
        """Set the shapes of an input.

        Raises:
            ConfigError: Ranks differ, an extent is negative, or minimum <= optimum <= maximum does not hold.
        """
        self._shapes[input] = _checked(f"input {input!r}", (min, opt, max), least=0)

    def get_shape(self, input: str) -> list[Shape]:
        """Return the minimum, optimum and maximum shape; an empty list if not set."""
        return list(self._shapes.get(input, ()))

    def set_shape_input(self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:
        """Set the values of a shape tensor, an input that carries dimensions. A run rejects values outside the range.

        Args:
            input: name of the input.
            min: minimum of each element; for a scalar, one value.
            opt: values used to compute sizes.
            max: maximum of each element.

        Raises:
            ConfigError: Lengths differ, or minimum <= optimum <= maximum does not hold.
        """
        self._values[input] = _checked(f"shape input {input!r}", (min, opt, max), least=None)

    def get_shape_input(self, input: str) -> list[Shape]:
        """Return the minimum, optimum and maximum values; an empty list if not set."""
        return list(self._values.get(input, ()))

    def __bool__(self) -> bool:
        """Return whether any shape or value is set; each `set_shape` was checked when it was called."""
        return bool(self._shapes or self._values)

    @property
    def shapes(self) -> Mapping[str, ShapeRange]:
        """(minimum, optimum, maximum) shape by input name, sorted."""
        return dict(sorted(self._shapes.items()))

    @property
    def shape_values(self) -> Mapping[str, ShapeRange]:
        """(minimum, optimum, maximum) values by shape input name, sorted."""
        return dict(sorted(self._values.items()))

    @property
    def is_fixed(self) -> bool:
        """Whether minimum, optimum and maximum are equal for every input, as the DLA requires."""
        return all(low == middle == high for low, middle, high in (*self._shapes.values(), *self._values.values()))

    @property
    def fixed_shapes(self) -> dict[str, Shape]:
        """Shape by input name, for the inputs whose minimum, optimum and maximum are equal."""
        return {name: low for name, (low, middle, high) in self.shapes.items() if low == middle == high}

    def check(self, network: Network) -> None:
        """Check that the profile matches a network.

        Raises:
            ConfigError: An input does not exist, a dynamic input has no shapes, a shape contradicts a fixed dimension,
                values are set for an input that cannot carry dimensions or their number differs from its elements, or
                dimensions with the same name have different ranges. The message lists all of them.
        """
        inputs = {tensor.name: tensor for tensor in network.inputs}
        problems = [
            f"the network has no input {name!r}" for name in (*self.shapes, *self.shape_values) if name not in inputs
        ]
        for name, tensor in inputs.items():
            declared = tensor.shape
            if name not in self._shapes:
                if any(extent < 0 for extent in declared):
                    problems.append(f"input {name!r} is dynamic, {declared}, and needs shapes")
                continue
            problems += [
                f"input {name!r} is declared as {declared}, but the profile has {shape}"
                for shape in dict.fromkeys(self._shapes[name])
                if not fits_declared(shape, declared)
            ]
        problems += [problem for tensor in network.inputs for problem in self._value_problems(tensor)]
        problems += self._name_problems(network)
        if problems:
            raise ConfigError(
                "The optimization profile must match the network",
                where=f"network {network.name!r}",
                found="; ".join(problems),
                remedy="Call set_shape(input, min, opt, max) once for every dynamic input, and "
                "set_shape_input(input, min, opt, max), one value per element, for every input that carries dimensions "
                "(on the command line: --shape NAME=MIN:OPT:MAX and --shape-values NAME=MIN:OPT:MAX)",
            )

    def _value_problems(self, tensor: Tensor) -> Iterator[str]:
        values = self._values.get(tensor.name)
        if values is None:
            return
        shape = self._shapes.get(tensor.name, (tensor.shape,))[-1]
        if tensor.dtype not in (DataType.INT32, DataType.INT64) or len(shape) > 1:
            yield (
                f"input {tensor.name!r} is {tensor.dtype.text} {shape}, but the profile has values for it as if it "
                "carried dimensions"
            )
        elif -1 not in shape and len(values[0]) != math.prod(shape):
            yield f"input {tensor.name!r} has the shape {shape}, but the profile has {len(values[0])} values"

    def _name_problems(self, network: Network) -> Iterator[str]:
        """Return problems with dimensions that share a name but have different extents."""
        first: dict[str, tuple[str, tuple[int, ...]]] = {}
        for tensor in network.inputs:
            shapes = self._shapes.get(tensor.name, (tensor.shape,) * 3)
            for axis, name in sorted(tensor.dimension_names.items()):
                if any(not 0 <= axis < len(shape) for shape in shapes):
                    continue  # told already, as a shape that does not fit
                extents = tuple(shape[axis] for shape in shapes)
                other, expected = first.setdefault(name, (tensor.name, extents))
                if extents != expected and -1 not in (*extents, *expected):
                    yield (
                        f"dimension {name!r} is {':'.join(map(str, expected))} in input {other!r} and "
                        f"{':'.join(map(str, extents))} in input {tensor.name!r}"
                    )


def _checked(
    where: str, shapes: tuple[Sequence[int], Sequence[int], Sequence[int]], *, least: int | None
) -> ShapeRange:
    low, middle, high = (tuple(int(extent) for extent in shape) for shape in shapes)
    ordered = len(low) == len(middle) == len(high) and all(
        a <= b <= c for a, b, c in zip(low, middle, high, strict=True)
    )
    if not ordered or (least is not None and any(extent < least for extent in low)):
        raise ConfigError(
            "The shapes of a profile must have the same rank, and minimum <= optimum <= maximum in each dimension",
            where=where,
            found=f"minimum {low}, optimum {middle}, maximum {high}",
            allowed=None if least is None else f"extents of at least {least}",
            remedy="Specify minimum, optimum and maximum in ascending order, with the same number of dimensions",
        )
    return low, middle, high


def profiles_of(config: BuilderConfig) -> list[OptimizationProfile]:
    """Return the optimization profiles of a config."""
    return [config.get_optimization_profile(index) for index in range(config.num_optimization_profiles)]


def suggested_shape(tensor: Tensor) -> str:
    """Return the complete command-line option that sets the shape of a dynamic input.

    Unknown extents are 1, except the height and width of pictures, which are 224.
    """
    rank = len(tensor.shape)
    extents = (
        extent if extent >= 0 else 224 if rank == 4 and axis >= 2 else 1 for axis, extent in enumerate(tensor.shape)
    )
    return f"--shape {printable(tensor.name, kept='')}={'x'.join(map(str, extents))}"


def require_profile(network: Network, config: BuilderConfig) -> None:
    """Reject a network with dynamic inputs, or inputs that carry dimensions, that no profile covers.

    Raises:
        ConfigError: Inputs are not covered; the message lists them.
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
        f"{tensor.name!r} {tensor.dtype.text} {tensor.shape}"
        for tensor in network.inputs
        if tensor.is_shape_tensor
        and not (profiles and all(tensor.name in profile.shape_values for profile in profiles))
    ]
    if unstated:
        raise ConfigError(
            "Inputs that carry dimensions must have values in every optimization profile",
            where=f"network {network.name!r}",
            found=", ".join(unstated),
            remedy="Call set_shape_input(input, min, opt, max) on the profile for each of these inputs, and add the "
            "profile to the config (on the command line: --shape-values NAME=VALUES); or make them constants",
        )


def profile_shapes(network: Network, config: BuilderConfig) -> Sequence[ProfileShapes]:
    """Return the profiles as stored in the engine.

    They contain the shapes of each input that is still dynamic, and the values of each input that has them, even if no
    layer reads these any more.
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
    """Return the shapes used to compute sizes, by input name: the optimum of the first profile; {} without profiles."""
    profiles = profiles_of(config)
    names = {tensor.name for tensor in network.inputs}
    return {name: optimum for name, (_, optimum, _) in profiles[0].shapes.items() if name in names} if profiles else {}
