"""The host kernels of a builder config: those that are named or forbidden, and the timing cache to choose by."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import attrs

from dryfit.builder.config.device_settings import require_network
from dryfit.builder.config.timing_cache import TimingCache, processor_name
from dryfit.errors import ConfigError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.layer import Layer
from dryfit.network.network import Network


@attrs.define(eq=False, repr=False, slots=False)
class KernelSettings(KnownAttributes):
    """The part of a builder config that says which host kernels run its layers."""

    _kernels: weakref.WeakKeyDictionary[Layer, str] = attrs.field(init=False, factory=weakref.WeakKeyDictionary)
    _forbidden: list[str] = attrs.field(init=False, factory=list)
    _timing_cache: TimingCache | None = attrs.field(init=False, default=None)

    def set_kernel(self, layer: Layer, name: str) -> None:
        """Name the host kernel that runs a layer and what it takes into its group, instead of the fastest.

        The layer becomes the first of its group. Whether its device has the kernel, and whether that can run the layer,
        is looked at when the network is built.

        Raises:
            ConfigError: the layer is in no network, or the name is no text.
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
        """The kernel that was named for a layer; None where the builder chooses."""
        return self._kernels.get(layer)

    def reset_kernel(self, layer: Layer) -> None:
        """Let the builder choose the layer's kernel again."""
        self._kernels.pop(layer, None)

    def explicit_kernels(self, network: Network) -> dict[str, str]:
        """Layer name to kernel, for the layers of a network that have one named, in the network's order."""
        return {layer.name: self._kernels[layer] for layer in network.layers if layer in self._kernels}

    def forbid_kernels(self, pattern: str) -> None:
        """Choose no host kernel whose name fits a pattern, such as `cpu.winograd_*`; several patterns add up.

        A kernel that is named for a layer runs it all the same. In the place of TensorRT's tactic sources: kernels go
        by their names here.

        Raises:
            ConfigError: the pattern is no text.

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
        """The patterns of kernels that are not chosen."""
        return tuple(self._forbidden)

    def reset_forbidden_kernels(self) -> None:
        """Let every kernel be chosen again."""
        self._forbidden.clear()

    def create_timing_cache(self, serialized_timing_cache: bytes = b"") -> TimingCache:
        """A timing cache from its text; an empty text gives an empty one.

        Raises:
            ConfigError: it is no timing cache; the line is named.
        """
        return TimingCache.parse(serialized_timing_cache)

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool = False) -> bool:
        """Choose kernels by this cache, and add to it what is measured; True.

        Without one, builds share a file in the user's cache folder.

        Raises:
            ConfigError: it was measured on another processor, and that matters; or it is no timing cache.
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
        """The cache that was set; None where builds share the default one."""
        return self._timing_cache
