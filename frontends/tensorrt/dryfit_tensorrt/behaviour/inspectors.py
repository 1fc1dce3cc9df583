"""The engine inspector, in the JSON of the version, with the words that tools of TensorRT look for."""

from __future__ import annotations

import json
from typing import Any

from dryfit_tensorrt.behaviour.monitoring import report
from dryfit_tensorrt.behaviour.objects import Base


class EngineInspector(Base):
    """Engine layers as text or JSON, in the form of the version."""

    def __init__(self) -> None:
        raise TypeError("tensorrt.EngineInspector: No constructor defined!")

    @classmethod
    def _of(cls, engine: Any) -> Any:
        self = cls._blank()
        self._engine, self._logger = engine, engine._logger
        self._core = engine._core.create_engine_inspector()
        self._context = None
        self._recorder = None
        return self

    @property
    def execution_context(self) -> Any:
        """The context whose shapes are used, or None."""
        return self._context

    @execution_context.setter
    def execution_context(self, context: Any) -> None:
        self._context = context
        self._core.execution_context = None if context is None else context._core

    def get_layer_information(self, layer_index: int, format: Any) -> str:
        """Return one engine layer."""
        layers = self._core.tensorrt_information(self._api.major)["Layers"]
        if not 0 <= layer_index < len(layers):
            report(self, "ERROR", f"get_layer_information: layer {layer_index} does not exist (0 to {len(layers) - 1})")
            return ""
        if format.name == "JSON":
            return json.dumps(layers[layer_index], indent=2)
        return str(self._core.tensorrt_lines()[1 + layer_index])

    def get_engine_information(self, format: Any) -> str:
        """Return all engine layers, and the inputs and outputs."""
        if format.name != "JSON":
            return "\n".join(self._core.tensorrt_lines())
        return json.dumps(self._core.tensorrt_information(self._api.major), indent=2)

    @property
    def error_recorder(self) -> Any:
        """The recorder of errors, or None."""
        return self._recorder

    @error_recorder.setter
    def error_recorder(self, recorder: Any) -> None:
        self._recorder = recorder
