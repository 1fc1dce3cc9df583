"""The part of a builder config that holds the shapes that an engine is built for."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

import attrs

from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.reference.inference import infer_specs


class ConfigProfiles:
    """Optimization profiles, in the order in which they were added."""

    def __init__(self) -> None:
        self._profiles: list[OptimizationProfile] = []
        self._inferred: weakref.WeakKeyDictionary[Network, _Inferred] = weakref.WeakKeyDictionary()

    def add_optimization_profile(self, profile: OptimizationProfile) -> int:
        """Add shapes that the engine is built for; returns the profile's number.

        Raises:
            ConfigError: nothing was stated in the profile.
        """
        if not profile:
            raise ConfigError("The optimization profile states no shapes", remedy="Call set_shape on it first")
        self._profiles.append(profile)
        return len(self._profiles) - 1

    @property
    def num_optimization_profiles(self) -> int:
        """Number of profiles."""
        return len(self._profiles)

    def get_optimization_profile(self, index: int) -> OptimizationProfile:
        """A profile by number.

        Raises:
            ConfigError: there is no such profile.
        """
        if not 0 <= index < len(self._profiles):
            raise ConfigError(
                "There is no optimization profile of this number",
                found=index,
                allowed=f"0 to {len(self._profiles) - 1}" if self._profiles else "none was added",
            )
        return self._profiles[index]

    def _fixed_specs(self, network: Network) -> Mapping[str, TensorSpec] | None:
        """The specs for the one shape that all profiles state; None where the network is static, or they differ.

        They are inferred once for as long as the network stays as it is: scripts ask about one layer after another.
        """
        if not self._profiles or all(extent >= 0 for tensor in network.inputs for extent in tensor.shape):
            return None
        shapes = self._profiles[0].fixed_shapes
        if any(profile.fixed_shapes != shapes or not profile.is_fixed for profile in self._profiles):
            return None
        inferred = self._inferred.get(network)
        if inferred is None or inferred.revision != network.revision or inferred.shapes != shapes:
            specs = infer_specs(network, shapes)
            inferred = self._inferred[network] = _Inferred(network.revision, shapes, specs)
        return inferred.specs


@attrs.frozen(eq=False)
class _Inferred:
    """The specs of a network's tensors for fixed input shapes, and the revision of the network that they are of."""

    revision: int
    shapes: Mapping[str, Shape]
    specs: Mapping[str, TensorSpec]
