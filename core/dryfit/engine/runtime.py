"""Loading of engines: TensorRT's `IRuntime`."""

from __future__ import annotations

import logging

from dryfit.engine.engine import Engine
from dryfit.engine.file_source import EngineSource
from dryfit.errors import ConfigError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.plugins import registry


class Runtime(KnownAttributes):
    """Loads engines for a DLA core.

    Args:
        logger: logger that receives each loaded engine; default: `dryfit.engine`.

    Example:
        >>> engine = Runtime().deserialize_engine("model.engine")
    """

    logger: logging.Logger

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self.logger = logger or logging.getLogger("dryfit.engine")
        self._dla_core = 0

    def deserialize_engine(self, source: EngineSource) -> Engine:
        """Load an engine from a file path, or from the bytes of a file.

        Raises:
            EngineFileError: See `dryfit.engine.engine_file.load`.
        """
        engine = Engine.load(source)
        self.logger.info("Loaded engine %r: %d engine layers", engine.name, engine.num_layers)
        return engine

    deserialize_cuda_engine = deserialize_engine

    @property
    def num_DLA_cores(self) -> int:
        """Number of DLA cores of the DLA target's default platform; 0 if no DLA target is installed."""
        target = registry.find_target("DLA")
        return 0 if target is None else target.platform(None).cores

    @property
    def DLA_core(self) -> int:
        """DLA core that runs the engines; default: 0; -1 for none. All cores behave the same here."""
        return self._dla_core

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        if not -1 <= core < self.num_DLA_cores:
            raise ConfigError(
                "The DLA core is out of range",
                where="runtime",
                found=core,
                allowed=f"-1 to {self.num_DLA_cores - 1}",
                remedy="Choose one of these cores, or -1 for none",
            )
        self._dla_core = core
