"""Refit of an engine with the weights of an ONNX model: TensorRT's `IParserRefitter`.

The model is imported in the same way as the engine's model, so that its layers have the same names; then the weights of
each layer are assigned to the layer with the same name. This also covers weights that the importer computes, such as
those of a batch normalization.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dryfit.builder.refit.refitter import Refitter
from dryfit.engine.refit_record import WeightsPlace, digest
from dryfit.errors import DryfitError
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.serialization import network_to_dict
from dryfit.network.tensor import Array
from dryfit.network.weights_role import PARAMETERS, weights_of
from dryfit.onnx.model_file import ModelSource
from dryfit.onnx.parser import KeepsErrors, network_from_onnx
from dryfit.onnx.problems import ErrorCode, ImportProblem, ModelRefusedError


class OnnxParserRefitter(KeepsErrors):
    r"""Passes the weights of ONNX models to a refitter.

    It only collects the weights: `Refitter.refit_cuda_engine` applies them to the engine. Layers that the user added to
    the network after the import keep their weights.

    Args:
        refitter: refitter of the engine.
        logger: an object with `log(severity, text)` that also receives each error.

    Example:
        >>> refitter = Refitter(engine)
        >>> parser = OnnxParserRefitter(refitter)
        >>> if not parser.refit_from_file("model.onnx"):
        ...     print(*(parser.get_error(index) for index in range(parser.num_errors)), sep="\n")
        >>> refitter.refit_cuda_engine()
        True
    """

    def __init__(self, refitter: Refitter, logger: Any = None) -> None:
        super().__init__(logger)
        self._refitter = refitter
        self._places = {WeightsPlace(layer, role) for layer, role in zip(*refitter.get_all(), strict=True)}

    def refit_from_file(self, path: str | os.PathLike[str]) -> bool:
        """Read the weights of a model file; return False, reading nothing, if it is not the engine's model."""
        return self._refit(path, None)

    def refit_from_bytes(self, model: bytes, path: str | os.PathLike[str] | None = None) -> bool:
        """Read the weights of a model file from bytes. `path` is the file's path, used for external data."""
        return self._refit(bytes(model), Path(path).parent if path is not None else None)

    def _refit(self, source: ModelSource, folder: Path | None) -> bool:
        try:
            network = network_from_onnx(source, folder=folder)
            problems = self._take(network)
        except ModelRefusedError as error:
            problems = list(error.problems)
        except DryfitError as error:
            problems = [ImportProblem(ErrorCode.MODEL_DESERIALIZE_FAILED, str(error))]
        return self._has_none(problems)

    def _take(self, network: Network) -> list[ImportProblem]:
        """Give the refitter all weights of a model, or none of them and the reasons."""
        own = self._refitter.network
        texts = [*different_layers(own, network), *self._different_constants(own, network)]
        if texts:
            return [ImportProblem(ErrorCode.REFIT_FAILED, text) for text in texts]
        for layer in network.layers:
            for role, array in weights_of(layer):
                if WeightsPlace(layer.name, role) in self._places:
                    self._refitter.set_weights(layer.name, role, array)
        return []

    def _different_constants(self, own: Network, model: Network) -> Iterator[str]:
        """Weights of a model that are not as in the engine, and cannot be exchanged."""
        layers = {layer.name: layer for layer in own.layers}
        for layer in model.layers:
            kept = dict(weights_of(layers[layer.name])) if layer.name in layers else {}
            for role, array in weights_of(layer):
                if WeightsPlace(layer.name, role) not in self._places and not _is_same(kept.get(role), array):
                    yield f"{layer.where}: {role.name} does not match the engine and cannot be refitted"


def different_layers(own: Network, model: Network) -> Iterator[str]:
    """Return how a model's layers differ from the engine's beyond weights; engine-only layers do not count."""
    layers = {layer.name: layer for layer in own.layers}
    for layer in model.layers:
        counterpart = layers.get(layer.name)
        if counterpart is None or counterpart.kind != layer.kind:
            kind = "" if counterpart is None else counterpart.kind
            found = f"where the layer is of kind {kind}" if kind else "which has no layer with this name"
            yield f"{layer.where}: The engine was built from another network, {found}"
            continue
        before, after = _parameters(counterpart), _parameters(layer)
        for name in after:
            if before[name] != after[name]:
                yield (
                    f"{layer.where}: The engine was built with another `{name}`, which cannot be exchanged "
                    f"(found {after[name]}; allowed: {before[name]})"
                )


def _parameters(layer: Layer) -> Mapping[str, str]:
    """The parameters of a layer in words; weights by type and extents, other arrays with their contents."""
    return {
        field.name: _described(getattr(layer, field.name), is_weights=field.name in PARAMETERS.values())
        for field in layer.parameters()
    }


def _described(value: Any, *, is_weights: bool) -> str:
    if isinstance(value, np.ndarray):
        described = f"{value.dtype} {value.shape}"
        return described if is_weights else f"{described} with SHA-256 {digest(value)}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_described(item, is_weights=is_weights)}" for key, item in value.items())
    if isinstance(value, Network):
        # What loops and conditionals run is not exchanged: all of it must be as it was.
        data, arrays = network_to_dict(value)
        text = json.dumps([data, {name: digest(array) for name, array in arrays.items()}])
        return f"{value!r} with SHA-256 {hashlib.sha256(text.encode()).hexdigest()}, whose weights cannot be refitted"
    return repr(value)


def _is_same(kept: Array | None, array: Array) -> bool:
    is_alike = kept is not None and (kept.dtype, kept.shape) == (array.dtype, array.shape)
    return kept is not None and is_alike and digest(kept) == digest(array)
