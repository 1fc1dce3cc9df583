"""Models without names: layers, tensors, dimensions and functions are numbered, and comments are removed.

The names are gone before any question is asked, so that no part of an answer can contain one. Types of operators stay,
as they decide what a layer is.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import onnx

from dryfit.answers.asked import Model, form_of, format_of, import_model, model_source
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.onnx.model_file import ModelSource, SharedModel
from dryfit.plugins.contributions import ImportOptions
from dryfit.plugins.model_importers import DEFAULT_FORMAT, model_importers
from dryfit.quantization.cache_forms import read_ranges_file, write_ranges_file

BY_PATTERN = ("placement", "layer_device_types", "layer_precisions", "layer_output_types", "quantize_method")
"""Options that name layers by patterns, which numbers do not match."""

BY_TENSOR = ("shape", "shape_values")
FILES = ("calibration_cache", "ranges")


@contextlib.contextmanager
def anonymous(model: Model, options: Mapping[str, Any]) -> Iterator[tuple[onnx.ModelProto | bytes, dict[str, Any]]]:
    """Give the model without names, and the options by its new names; caches are files for the time of the context.

    Raises:
        ConfigError: The model has no file, the importer of its format replaces no names, or an option names layers.
        OnnxImportError: The model is corrupt or has unsupported operators.
    """
    source, folder, _ = model_source(model, options.get("example_inputs"))
    named = [name for name in BY_PATTERN if options.get(name)]
    kind = format_of(source)
    renames = model_importers()[kind].without_names if kind else None
    if isinstance(source, Network) or named or (renames is None and kind != DEFAULT_FORMAT):
        raise ConfigError(
            "A report without names needs a model whose importer replaces names, and no options that name layers",
            where="anonymous",
            found=", ".join(named) or form_of(source),
            remedy="Leave out the options, or the anonymity",
        )
    renamed = _onnx_without_names(source) if renames is None else renames(source)
    names = dict(zip(_names(source, folder, kind), _names(renamed, None, kind), strict=True))
    given = {key: value for key, value in options.items() if key != "example_inputs"}
    for key in BY_TENSOR:
        if given.get(key):
            given[key] = {names.get(name, name): value for name, value in dict(given[key]).items()}
    with tempfile.TemporaryDirectory(prefix="dryfit-") as place:
        for key in FILES:
            if given.get(key):
                stored = read_ranges_file(Path(given[key]))
                entries = [attrs.evolve(one, name=names[one.name]) for one in stored.entries if one.name in names]
                given[key] = Path(place) / key
                write_ranges_file(given[key], attrs.evolve(stored, entries=entries), stored.form)
        yield renamed, given


def _onnx_without_names(source: ModelSource) -> onnx.ModelProto:
    loaded = onnx.load_from_string(source) if isinstance(source, bytes) else source
    if isinstance(loaded, SharedModel):
        loaded = loaded.whole()
    return without_names(loaded if isinstance(loaded, onnx.ModelProto) else onnx.load(loaded))


def _names(source: ModelSource, folder: Path | None, kind: str) -> list[str]:
    """The names of the tensors of a model of a format, in the order of its network."""
    network = import_model(source, ImportOptions(quantize_method="", folder=folder), kind).network
    return [tensor.name for tensor in _tensors(network)]


def without_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model with numbers in the place of names, and without comments."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    functions = {(one.domain, one.name): f"function_{number}" for number, one in enumerate(copy.functions, 1)}
    names = _Names(functions)
    for field in ("doc_string", "producer_name", "producer_version", "domain"):
        copy.ClearField(field)
    del copy.metadata_props[:]
    for function in copy.functions:
        function.name = functions[function.domain, function.name]
        inside = _Names(functions)
        for inner in (function.input, function.output):
            inner[:] = [inside.tensor(name) for name in inner]
        function.ClearField("doc_string")
        del function.metadata_props[:], function.value_info[:]
        inside.nodes(function.node)
    names.graph(copy.graph)
    return copy


class _Names:
    """New names of the tensors, nodes and dimensions of a model, or of a function."""

    def __init__(self, functions: Mapping[tuple[str, str], str]) -> None:
        self._functions = functions
        self._tensors: dict[str, str] = {"": ""}
        self._dimensions: dict[str, str] = {}
        self._kinds: Counter[str] = Counter()

    def tensor(self, name: str, word: str = "tensor") -> str:
        """The new name of a tensor; the first word that it is asked with stays."""
        if name not in self._tensors:
            self._kinds[word] += 1
            self._tensors[name] = f"{word}_{self._kinds[word]}"
        return self._tensors[name]

    def graph(self, graph: onnx.GraphProto) -> None:
        """Rename what a graph holds, and the graphs inside of it."""
        graph.name = "model"
        graph.ClearField("doc_string")
        del graph.metadata_props[:], graph.quantization_annotation[:]
        stored = {one.name for one in graph.initializer} | {one.values.name for one in graph.sparse_initializer}
        for values, word in ((graph.input, "input"), (graph.output, "output"), (graph.value_info, "tensor")):
            for value in values:
                value.name = self.tensor(value.name, "weights" if value.name in stored else word)
                value.ClearField("doc_string")
                del value.metadata_props[:]
                self._type(value.type)
        for tensor in (*graph.initializer, *(one.values for one in graph.sparse_initializer)):
            tensor.name = self.tensor(tensor.name, "weights")
            tensor.ClearField("doc_string")
        self.nodes(graph.node)

    def nodes(self, nodes: Any) -> None:
        """Rename nodes, with what they read and write."""
        for node in nodes:
            node.op_type = self._functions.get((node.domain, node.op_type), node.op_type)
            self._kinds[node.op_type] += 1
            node.name = f"{node.op_type}_{self._kinds[node.op_type]}"
            node.ClearField("doc_string")
            del node.metadata_props[:]
            for values in (node.input, node.output):
                values[:] = [self.tensor(name) for name in values]
            for attribute in node.attribute:
                attribute.ClearField("doc_string")
                for tensor in (attribute.t, *attribute.tensors):
                    tensor.ClearField("name")
                    tensor.ClearField("doc_string")
                for graph in ([attribute.g] if attribute.HasField("g") else [], attribute.graphs):
                    for one in graph:
                        self.graph(one)

    def _type(self, value: onnx.TypeProto) -> None:
        value.ClearField("denotation")
        for dimension in value.tensor_type.shape.dim if value.tensor_type.HasField("shape") else ():
            dimension.ClearField("denotation")
            if dimension.dim_param:
                new = f"N{len(self._dimensions) + 1}"
                dimension.dim_param = self._dimensions.setdefault(dimension.dim_param, new)


def _tensors(network: Network) -> Iterator[Any]:
    yield from network.inputs
    for layer in network.layers:
        yield from layer.outputs
