"""The switches of a builder config, and where layers fall back to."""

from __future__ import annotations

from dryfit.builder.config.enumerations import BuilderFlag, DeviceType, member, whole_number
from dryfit.errors import ConfigError
from dryfit.plugins import registry


class ConfigFlags:
    """The part of a builder config that holds its flags and the fallback device, which is one of them for the GPU."""

    def __init__(self) -> None:
        self._flags: set[BuilderFlag] = {BuilderFlag.TF32}
        self._fallback: str | None = None

    def set_flag(self, flag: BuilderFlag) -> None:
        """Switch a flag on.

        Raises:
            ConfigError: there is no such flag.
        """
        self._flags.add(_flag(flag))

    def clear_flag(self, flag: BuilderFlag) -> None:
        """Switch a flag off."""
        self._flags.discard(_flag(flag))

    def get_flag(self, flag: BuilderFlag) -> bool:
        """Whether a flag is on."""
        return _flag(flag) in self._flags

    @property
    def flags(self) -> int:
        """All flags as a bit mask, `1 << flag` each; TF32 alone in a new config."""
        return sum(1 << flag for flag in self._flags)

    @flags.setter
    def flags(self, mask: int) -> None:
        mask = whole_number(mask, "mask of flags")
        known = sum(1 << flag for flag in BuilderFlag)
        if mask & ~known:
            raise ConfigError("The mask has bits that are no builder flag", found=bin(mask), allowed=bin(known))
        self._flags = {flag for flag in BuilderFlag if mask >> flag & 1}

    @property
    def fallback_device(self) -> str | None:
        """The device of layers that cannot run on the one they were given; None: such a layer is an error."""
        return self._fallback or (str(DeviceType.GPU) if self.get_flag(BuilderFlag.GPU_FALLBACK) else None)

    def allow_fallback(self, device: str | None) -> None:
        """Let layers that cannot run on their device go to another; None forbids it.

        Naming the GPU is the same as the flag `GPU_FALLBACK`.

        Raises:
            UnknownNameError: no installed package brings the device.
        """
        name = None if device is None else registry.target(device).device
        self._fallback = None if name == DeviceType.GPU else name
        self.allow_gpu_fallback(name == DeviceType.GPU)

    def allow_gpu_fallback(self, allow: bool) -> None:
        """Switch the flag `GPU_FALLBACK`; TensorRT's `allowGPUFallback`."""
        (self.set_flag if allow else self.clear_flag)(BuilderFlag.GPU_FALLBACK)


def _flag(flag: object) -> BuilderFlag:
    # A real flag is the rule, and flags are asked for often.
    return flag if isinstance(flag, BuilderFlag) else member(BuilderFlag, flag, "builder flag")
