"""The host kernels of a builder config: kernels set or forbidden by the user, and the timing cache."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import attrs

from dryfit.builder.config.device_settings import require_network
from dryfit.builder.config.timing_cache import TimingCache
from dryfit.errors import ConfigError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.target.tactics import processor_name


@attrs.define(eq=False, repr=False, slots=False)
class KernelSettings(KnownAttributes):
    """The part of a builder config that selects the host kernels of its layers."""

    _kernels: weakref.WeakKeyDictionary[Layer, str] = attrs.field(init=False, factory=weakref.WeakKeyDictionary)
    _forbidden: list[str] = attrs.field(init=False, factory=list)
    _timing_cache: TimingCache | None = attrs.field(init=False, default=None)

    def set_kernel(self, layer: Layer, name: str) -> None:
        """Set the host kernel that runs a layer and its fusion group, instead of the fastest one.

        The layer becomes the first of its group. Whether the device has the kernel, and whether the kernel supports the
        layer, is checked at build time.

        Raises:
            ConfigError: The layer is not in a network, or the name is not a string.
        """
        require_network(layer)
        if not isinstance(name, str) or not name:
            raise ConfigError(
                "A kernel name must be a string",
                where=f"layer {layer.name!r}",
                found=repr(name),
                allowed="'cpu.convolution'",
                remedy="Pass the name that `dryfit inspect --verbose` shows",
            )
        self._kernels[layer] = name

    def get_kernel(self, layer: Layer) -> str | None:
        """Return the kernel set for a layer; None if the builder chooses."""
        return self._kernels.get(layer)

    def reset_kernel(self, layer: Layer) -> None:
        """Remove the kernel set for a layer, so that the builder chooses."""
        self._kernels.pop(layer, None)

    def explicit_kernels(self, network: Network) -> dict[str, str]:
        """Return kernel by layer name, in network order, for layers with a kernel set."""
        return {layer.name: self._kernels[layer] for layer in network.layers if layer in self._kernels}

    def forbid_kernels(self, pattern: str) -> None:
        """Exclude host kernels whose name matches a pattern, such as `cpu.winograd_*`; patterns accumulate.

        A kernel that is set for a layer runs it nevertheless. This replaces TensorRT's tactic sources: here, kernels
        are selected by name.

        Raises:
            ConfigError: The pattern is not a string.

        Example:
            >>> config = BuilderConfig()
            >>> config.forbid_kernels("cpu.winograd_*")
            >>> config.forbidden_kernels
            ('cpu.winograd_*',)
        """
        if not isinstance(pattern, str) or not pattern:
            raise ConfigError(
                "A kernel pattern must be a string",
                found=repr(pattern),
                allowed="'cpu.winograd_*'",
                remedy="Pass a name or a pattern with `*`",
            )
        if pattern not in self._forbidden:
            self._forbidden.append(pattern)

    @property
    def forbidden_kernels(self) -> Sequence[str]:
        """Patterns of excluded kernels."""
        return tuple(self._forbidden)

    def reset_forbidden_kernels(self) -> None:
        """Remove all patterns of excluded kernels."""
        self._forbidden.clear()

    def create_timing_cache(self, serialized_timing_cache: bytes = b"") -> TimingCache:
        """Create a timing cache from its text; an empty text creates an empty cache.

        Raises:
            ConfigError: The text is not a timing cache; the message states the line.
        """
        return TimingCache.parse(serialized_timing_cache)

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool = False) -> bool:
        """Use this timing cache to choose kernels, and add new measurements to it. Returns True.

        Default: builds share a file in the user's cache folder.

        Raises:
            ConfigError: The cache was measured on another processor and cannot be used, or it is not a timing cache.
        """
        if not isinstance(cache, TimingCache):
            raise ConfigError(
                "The file is not a timing cache",
                found=type(cache).__name__,
                allowed="what `create_timing_cache` returns",
                remedy="Pass what config.create_timing_cache(data) returns",
            )
        cache.require_processor(processor_name(), ignore_mismatch)
        self._timing_cache = cache
        return True

    def get_timing_cache(self) -> TimingCache | None:
        """Return the timing cache that was set; None if builds share the default one."""
        return self._timing_cache
