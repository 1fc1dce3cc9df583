"""Models without names: layers, tensors and dimensions are numbered, and all that a build does not need is removed.

The names are gone before any question is asked, so that no part of an answer can contain one. Types of operators stay,
as they decide what a layer is.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import onnx
import onnx.inliner

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

KEPT = {
    "ModelProto": "ir_version opset_import graph functions",
    "OperatorSetIdProto": "domain version",
    "GraphProto": "node name initializer sparse_initializer input output value_info",
    "NodeProto": "input output name op_type domain attribute",
    "AttributeProto": "name type f i s t g tp floats ints strings tensors graphs sparse_tensor sparse_tensors "
    "type_protos",
    "TensorProto": "dims data_type float_data int32_data int64_data raw_data double_data uint64_data name",
    "SparseTensorProto": "values indices dims",
    "ValueInfoProto": "name type",
    "TypeProto": "tensor_type sparse_tensor_type sequence_type optional_type map_type",
    "Tensor": "elem_type shape",
    "SparseTensor": "elem_type shape",
    "Sequence": "elem_type",
    "Optional": "elem_type",
    "Map": "key_type value_type",
    "TensorShapeProto": "dim",
    "Dimension": "dim_value dim_param",
}
"""Fields that stay, by message: those that a build depends on. All others are removed, also ones of later versions of
ONNX: comments, the producer, domains of models, metadata, training, paths of external data, annotations of devices."""


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
            "An anonymous report requires a model format with replaceable names, and no options that name layers",
            where="anonymous",
            found=", ".join(named) or form_of(source),
            remedy="Omit these options, or the option --anonymous",
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
    """Return a copy of a model with numbers in the place of names, and without anything that a build does not need.

    Functions are expanded where they are called. Types of operators, domains of operators that ONNX does not define,
    and values of attributes stay, since they decide what a layer is.

    Raises:
        ConfigError: The weights are in other files, which were not loaded.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(onnx.inliner.inline_local_functions(model) if model.functions else model)
    _require_weights(copy)
    del copy.functions[:]
    _keep_known(copy)
    names = _Names({"" if one.domain == "ai.onnx" else one.domain: one.version for one in copy.opset_import})
    names.graph(copy.graph)
    for index in reversed(range(len(copy.opset_import))):
        domain = copy.opset_import[index].domain
        if domain not in names.domains and not is_standard(domain):
            del copy.opset_import[index]
    return copy


def foreign_operators(model: onnx.ModelProto) -> list[str]:
    """Return the operators of a model that ONNX does not define, as `domain::name`."""
    return sorted({f"{one.domain}::{one.op_type}" for one in _nodes(model.graph) if not is_standard(one.domain)})


def is_standard(domain: str) -> bool:
    """Whether ONNX defines the operators of a domain."""
    return domain in ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training")


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _require_weights(message: Any) -> None:
    """Reject weights in other files: their paths are removed with all other names."""
    for tensor in _messages(message, "TensorProto"):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise ConfigError(
                "The weights of the model are in other files",
                where="anonymous",
                found=f"tensor {tensor.name}",
                allowed="a model with its weights loaded",
                remedy="Pass the path of the model, or load it with onnx.load",
            )


def _messages(message: Any, kind: str) -> Iterator[Any]:
    if message.DESCRIPTOR.name == kind:
        yield message
        return
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for one in value if isinstance(value, Sequence) else (value,):
                yield from _messages(one, kind)


def _keep_known(message: Any) -> None:
    """Remove all fields that are not in `KEPT`, and those that this version of ONNX does not know."""
    message.DiscardUnknownFields()
    kept = KEPT.get(message.DESCRIPTOR.name, "").split()
    for field, value in message.ListFields():
        if field.name not in kept:
            message.ClearField(field.name)
        elif field.type == field.TYPE_MESSAGE:
            for one in value if isinstance(value, Sequence) else (value,):
                _keep_known(one)


class _Names:
    """New names of the tensors, nodes and dimensions of a model.

    Attributes:
        domains: domains of the operators.
    """

    def __init__(self, versions: Mapping[str, int]) -> None:
        self._versions = versions
        self._tensors: dict[str, str] = {"": ""}
        self._dimensions: dict[str, str] = {}
        self._kinds: Counter[str] = Counter()
        self.domains = set[str]()

    def tensor(self, name: str, word: str = "tensor") -> str:
        """The new name of a tensor; the first word that it is asked with stays."""
        if name not in self._tensors:
            self._kinds[word] += 1
            self._tensors[name] = f"{word}_{self._kinds[word]}"
        return self._tensors[name]

    def graph(self, graph: onnx.GraphProto) -> None:
        """Rename what a graph holds, and the graphs inside of it."""
        graph.name = "model"
        stored = {one.name for one in graph.initializer} | {one.values.name for one in graph.sparse_initializer}
        for values, word in ((graph.input, "input"), (graph.output, "output"), (graph.value_info, "tensor")):
            for value in values:
                value.name = self.tensor(value.name, "weights" if value.name in stored else word)
                self._types(value)
        for tensor in (*graph.initializer, *(one.values for one in graph.sparse_initializer)):
            tensor.name = self.tensor(tensor.name, "weights")
        for one in graph.sparse_initializer:
            one.indices.ClearField("name")
        for node in graph.node:
            self._node(node)

    def _node(self, node: onnx.NodeProto) -> None:
        self.domains.add(node.domain)
        self._kinds[node.op_type] += 1
        node.name = f"{node.op_type}_{self._kinds[node.op_type]}"
        for values in (node.input, node.output):
            values[:] = [self.tensor(name) for name in values]
        known = self._attributes(node)
        if known is not None:
            for index in reversed([index for index, one in enumerate(node.attribute) if one.name not in known]):
                del node.attribute[index]
        for attribute in node.attribute:
            for tensor in _messages(attribute, "TensorProto"):
                if not (attribute.HasField("g") or attribute.graphs):
                    tensor.ClearField("name")
            self._types(attribute)
            for graph in ([attribute.g] if attribute.HasField("g") else [], attribute.graphs):
                for one in graph:
                    self.graph(one)

    def _attributes(self, node: onnx.NodeProto) -> Container[str] | None:
        """Names of the attributes that the operator has; None if ONNX does not define it."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        version = self._versions.get(domain, 0)
        if not is_standard(domain) or not onnx.defs.has(node.op_type, version, domain):
            return None
        return onnx.defs.get_schema(node.op_type, version, domain).attributes

    def _types(self, holder: Any) -> None:
        """Rename the dimensions in the types that a message holds, other than those of graphs inside of it."""
        for field, value in holder.ListFields():
            if field.type == field.TYPE_MESSAGE and field.message_type.name != "GraphProto":
                for one in value if isinstance(value, Sequence) else (value,):
                    self._types(one)
            elif field.name == "dim_param" and value:
                holder.dim_param = self._dimensions.setdefault(value, f"N{len(self._dimensions) + 1}")


def _tensors(network: Network) -> Iterator[Any]:
    yield from network.inputs
    for layer in network.layers:
        yield from layer.outputs
