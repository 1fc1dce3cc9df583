"""A device as one build sees it: the target's record, the platform and the software version that were chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.plugins import registry
from dryfit.target.formats import LINEAR, TensorFormat
from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform, Target

if TYPE_CHECKING:
    from dryfit.builder.config.builder_config import BuilderConfig


Specs = Mapping[str, TensorSpec]
"""Tensor name to spec."""


def known_shape(spec: TensorSpec) -> Shape:
    """A shape to reckon with: an extent that is known only at run time counts as 1."""
    return spec.shape if spec.is_static else tuple(max(extent, 1) if extent < 0 else extent for extent in spec.shape)


@frozen(eq=False)
class TargetVariant:
    """One target in one variant.

    Attributes:
        target: the record.
        platform: the variant of the device.
        software: the version whose rules hold; empty when the device has one rule set.
        power_mode: the clocks that estimates reckon with; None where the platform states none.
        pool_limits: memory pool to the limit in bytes that was set, or the platform's default; None means no limit.
    """

    target: Target
    platform: Platform
    software: tuple[int, ...]
    power_mode: PowerMode | None = None
    pool_limits: Mapping[str, int | None] = attrs.field(factory=dict)
    _formats: dict[tuple[str, Shape, DataType], Sequence[TensorFormat]] = attrs.field(
        init=False, factory=dict, repr=False
    )
    _sizes: dict[tuple[TensorFormat, Shape, DataType], int] = attrs.field(init=False, factory=dict, repr=False)
    _format_names: frozenset[str] = attrs.field(init=False, repr=False)

    @_format_names.default
    def _names_of_formats(self) -> frozenset[str]:
        tables = (*self.target.input_formats.values(), *self.target.output_formats.values())
        return frozenset([LINEAR.name, *(one.name for formats in tables for one in formats)])

    @classmethod
    def chosen(cls, config: BuilderConfig, device: str) -> TargetVariant:
        """What a config says of a device.

        Raises:
            UnknownNameError: no installed package brings this device, or its platform lacks the power mode.
            ConfigError: the platform does not have the software version that was set.
        """
        target = config.target(device)
        limits = {pool.name: config.get_memory_pool_limit(pool.name, device) for pool in target.memory_pools}
        return cls(target, config.platform(device), config.software(device), config.clocks(device), limits)

    @property
    def device(self) -> str:
        """The device's name."""
        return self.target.device

    @property
    def software_text(self) -> str:
        """The version as people write it."""
        return ".".join(map(str, self.software))

    def input_formats(self, shape: Shape, dtype: DataType) -> Sequence[TensorFormat]:
        """The formats in which it can read this tensor, its native one first."""
        key = ("input", tuple(shape), dtype)
        if key not in self._formats:
            self._formats[key] = _defined(self.target.input_formats.get(dtype, (LINEAR,)), shape, dtype)
        return self._formats[key]

    def output_formats(self, shape: Shape, dtype: DataType) -> Sequence[TensorFormat]:
        """The formats in which it can write this tensor, its native one first."""
        key = ("output", tuple(shape), dtype)
        if key not in self._formats:
            self._formats[key] = _defined(self.target.output_formats.get(dtype, (LINEAR,)), shape, dtype)
        return self._formats[key]

    def native_format(self, shape: Shape, dtype: DataType) -> TensorFormat:
        """How the device keeps this tensor while it works on it."""
        return self.output_formats(shape, dtype)[0]

    def size_bytes(self, layout: TensorFormat, shape: Shape, dtype: DataType) -> int:
        """Bytes that a tensor takes in one of the formats."""
        key = (layout, tuple(shape), dtype)
        if key not in self._sizes:
            self._sizes[key] = layout.size_bytes(shape, dtype, self.platform.family)
        return self._sizes[key]

    def knows(self, layout: TensorFormat) -> bool:
        """Whether a format is one of the device's, or plain row-major."""
        return layout.name in self._format_names


def knowing(variants: Mapping[str, TargetVariant], layout: TensorFormat, devices: Iterable[str]) -> TargetVariant:
    """The device that a format belongs to: the caller may keep a tensor in a format of the device that it feeds.

    Args:
        variants: device name to variant.
        layout: the format.
        devices: names of those to be asked first; the first of them is the answer where none knows the format.
    """
    first = list(devices)
    if variants[first[0]].knows(layout):
        return variants[first[0]]
    asked = [variants[device] for device in dict.fromkeys((*first, *variants))]
    return next((variant for variant in asked if variant.knows(layout)), variants[first[0]])


def _defined(formats: Sequence[TensorFormat], shape: Shape, dtype: DataType) -> Sequence[TensorFormat]:
    """Those formats that exist for the tensor; plain row-major where none does, such as for a vector."""
    return [one for one in formats if one.allows(shape, dtype)] or [LINEAR]


def variants_of(config: BuilderConfig, devices: Iterable[str]) -> dict[str, TargetVariant]:
    """Device name to what a config says of it: the default and the fallback device, others, and the host."""
    fallback = [config.fallback_device] if config.fallback_device else []
    named = [config.default_device_type, *fallback, *devices, registry.host().device]
    return {device: TargetVariant.chosen(config, device) for device in dict.fromkeys(named)}
