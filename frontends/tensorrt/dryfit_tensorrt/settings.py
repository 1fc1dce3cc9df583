"""What a run simulates: the TensorRT version, the board and its software; passed to child processes as environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import UnknownNameError

API_VARIABLE = "DRYFIT_TENSORRT_API"
PLATFORM_VARIABLE = "DRYFIT_TENSORRT_PLATFORM"
SOFTWARE_VARIABLE = "DRYFIT_TENSORRT_SOFTWARE"
VARIABLES = (API_VARIABLE, PLATFORM_VARIABLE, SOFTWARE_VARIABLE)


@frozen
class ApiLevel:
    """A version of TensorRT whose Python module dryfit has.

    Attributes:
        name: `major.minor`, as `--api` takes it.
        version: `tensorrt.__version__` and the version of the distribution `tensorrt`.
        module: the module that `import tensorrt` gives.
        aliases: other names that `--api` takes.
    """

    name: str
    version: str
    module: str
    aliases: tuple[str, ...] = ()


API_LEVELS = (
    ApiLevel("8.6", "8.6.1", "dryfit_tensorrt.trt8", ("8.6.1",)),
    ApiLevel("10.16", "10.16.1", "dryfit_tensorrt.trt10", ("10", "10.16.1")),
    ApiLevel("11.1", "11.1.0", "dryfit_tensorrt.trt11", ("11", "11.1.0")),
)
"""The versions, oldest first."""

DEFAULT_API = "10.16"
API_NAMES = tuple(name for level in API_LEVELS for name in (level.name, *level.aliases))


def api_level(name: str) -> ApiLevel:
    """Return the level of a name.

    Raises:
        UnknownNameError: dryfit has no module of this version.
    """
    for level in API_LEVELS:
        if name in (level.name, *level.aliases):
            return level
    raise UnknownNameError("TensorRT API version", name, API_NAMES, told="8.6, 10.16 or 11.1")


def _level(given: str | ApiLevel) -> ApiLevel:
    return given if isinstance(given, ApiLevel) else api_level(given)


@frozen
class Settings:
    """What the modules simulate; builders read it when they are created.

    Attributes:
        api: the TensorRT version.
        platform: board, such as agx-orin-64; None for the default of the modules.
        software: software version whose rules apply, such as 10.3 or jetpack-6.1; None for that of `api`.
    """

    api: ApiLevel = attrs.field(factory=lambda: api_level(DEFAULT_API), converter=_level)
    platform: str | None = None
    software: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Return the settings of this process; a variable that is not set, or empty, gives the default.

        Raises:
            UnknownNameError: the variable DRYFIT_TENSORRT_API names a version that dryfit does not have.
        """
        found = os.environ if environment is None else environment
        api, platform, software = (found.get(name) or None for name in VARIABLES)
        return cls(api or DEFAULT_API, platform, software)

    def environment(self) -> dict[str, str]:
        """Return the variables that carry these settings to a child process; "" for a default."""
        values = (self.api.name, self.platform or "", self.software or "")
        return dict(zip(VARIABLES, values, strict=True))
