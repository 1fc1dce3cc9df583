"""Show the contents of an engine: `dryfit inspect`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dryfit.answers.arithmetic import LayerArithmetic, arithmetic_blocks, arithmetic_of
from dryfit.answers.json_data import Count, members
from dryfit.answers.placement import Placement, placement_of
from dryfit.answers.placement_text import offloading_blocks, operator_blocks, segment_blocks
from dryfit.answers.refit import refit_line
from dryfit.answers.text import Answer, Block, Line, Table, bytes_text, type_text
from dryfit.attrs_classes import frozen
from dryfit.engine.engine import Engine
from dryfit.engine.plan import ProfileShapes
from dryfit.short_text import count_text


@frozen
class EngineTensor:
    """A tensor of an engine layer, described as TensorRT does.

    Attributes:
        name: name of the tensor.
        location: `Host` for a shape tensor, else `Device`.
        dimensions: shape of the tensor; -1 for a dynamic extent.
        format: format and type, as TensorRT names them.
        pool: memory pool of the tensor; None if it has no fixed place.
        offset: offset of the tensor in the pool.
        size: size of the tensor in the pool, in bytes.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {
        "name": "Name",
        "location": "Location",
        "dimensions": "Dimensions",
        "format": "Format/Datatype",
        "pool": "Pool",
        "offset": "Offset",
        "size": "Bytes",
    }
    JSON_OPTIONAL: ClassVar[Sequence[str]] = ("pool", "offset", "size")

    name: str
    location: str
    dimensions: Sequence[int]
    format: str
    pool: str | None
    offset: int | None
    size: int | None


@frozen
class EngineWeights:
    """The weights of an engine layer.

    Attributes:
        type: type of the values.
        count: number of values.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {"type": "Type", "count": "Count"}

    type: str
    count: Count


@frozen
class EngineLayer:
    """An engine layer described as TensorRT does, with details that TensorRT does not report.

    Attributes:
        name: name of the engine layer.
        layer_type: kind of the main layer.
        inputs: tensors that the layer reads.
        outputs: tensors that the layer writes.
        parameter_type: kind of layer that the parameters belong to.
        fused: kinds of the layers that were fused into the layer.
        tactic: host kernel that runs the layer on this machine.
        stream: always 0, because the host has one stream.
        metadata: ONNX nodes that the layer was imported from.
        device: device that runs the layer.
        segment: index of the layer's segment; -1 for none.
        precision: computation type of the layer.
        multiply_accumulates: multiply-accumulates per run; dynamic extents count as 1.
        source_layers: layers of the user's network.
        weights: type and count of the weights, by name.
        parameters: parameters of the layer kind, by their TensorRT names; in JSON they are members of the layer.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {
        "name": "Name",
        "layer_type": "LayerType",
        "inputs": "Inputs",
        "outputs": "Outputs",
        "parameter_type": "ParameterType",
        "fused": "Fused",
        "tactic": "TacticName",
        "stream": "StreamId",
        "metadata": "Metadata",
        "device": "Device",
        "segment": "Segment",
        "precision": "Precision",
        "multiply_accumulates": "MultiplyAccumulates",
        "source_layers": "SourceLayers",
        "weights": "Weights",
    }
    JSON_BESIDE: ClassVar[str] = "parameters"

    name: str
    layer_type: str
    inputs: Sequence[EngineTensor]
    outputs: Sequence[EngineTensor]
    parameter_type: str
    fused: Sequence[str]
    tactic: str
    stream: int
    metadata: str
    device: str
    segment: int
    precision: str
    multiply_accumulates: Count
    source_layers: Sequence[str]
    weights: Mapping[str, EngineWeights]
    parameters: Mapping[str, Any]


@frozen
class EngineBinding:
    """An input or output of an engine.

    Attributes:
        name: name of the input or output.
        mode: `input` or `output`.
        shape: shape of the tensor; -1 for a dynamic extent.
        type: type of its values.
        format: memory layout of the values.
    """

    name: str
    mode: str
    shape: Sequence[int]
    type: str
    format: str


@frozen(repr=False, kw_only=True)
class InspectAnswer(Placement, Answer):
    """The contents of an engine.

    Attributes:
        model: name of the engine.
        engine: path of the engine file.
        refittable: whether `dryfit refit` can exchange its weights.
        stripped: whether the engine has no weights until a refit.
        pools: number of bytes used, by DEVICE/POOL.
        arithmetic: arithmetic of each device, by computation type of its layers.
        engine_layers: engine layers in execution order, described as TensorRT does.
        binding_names: names of the inputs, then of the outputs.
        bindings: inputs, then outputs.
        profiles: shapes that the engine was built for.
    """

    COMMAND: ClassVar[str] = "inspect"
    JSON_NAMES: ClassVar[Mapping[str, str]] = {
        **{name: name for name in ("engine", "refittable", "stripped")},
        **{field.name: field.name for field in attrs.fields(Placement) if not field.name.startswith("_")},
        **{name: name for name in ("pools", "arithmetic")},
        "engine_layers": "Layers",
        "binding_names": "Bindings",
    }

    engine: str
    refittable: bool
    stripped: bool
    pools: Mapping[str, Count]
    arithmetic: Sequence[LayerArithmetic]
    engine_layers: Sequence[EngineLayer]
    bindings: Sequence[EngineBinding]
    profiles: Sequence[ProfileShapes]
    _refit: str

    @property
    def binding_names(self) -> Sequence[str]:
        """The names of the inputs, then of the outputs."""
        return [one.name for one in self.bindings]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        return f"{self.engine}: engine {self.model!r}, {count_text(len(self.engine_layers), 'engine layer')}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return the lines and tables that `dryfit inspect` prints."""
        yield Line(self.summary_line())
        if self.refittable:
            yield Line(self._refit)
        bindings = [(one.name, one.mode, one.shape, type_text(one.type), one.format) for one in self.bindings]
        yield Table("Inputs and outputs", ["name", "mode", "shape", "type", "format"], bindings)
        for index, profile in enumerate(self.profiles):
            shapes = [(name, *triple) for name, triple in profile.shapes.items()]
            values = [(f"values of {name}", *triple) for name, triple in profile.values.items()]
            columns = ["input", "minimum", "optimum", "maximum"]
            yield Table(f"Optimization profile {index}", columns, [*shapes, *values])
        yield from segment_blocks(self, verbose=verbose)
        yield from offloading_blocks(self, verbose=verbose)
        if self.pools:
            yield Table("Memory pools", ["pool", "used"], [(pool, bytes_text(n)) for pool, n in self.pools.items()])
        yield from arithmetic_blocks(self.arithmetic)
        yield from operator_blocks(self.quantized_operators)
        if verbose:
            rows = [
                (one.name, one.device, one.segment, type_text(one.precision), one.tactic) for one in self.engine_layers
            ]
            yield Table("Engine layers", ["name", "device", "segment", "precision", "host kernel"], rows)
        yield Line(f"Built with: {', '.join(self.plugins)}")


def inspect_engine(engine_file: Path) -> InspectAnswer:
    """Return the contents of an engine file.

    Raises:
        EngineFileError: The file is corrupt, or belongs to another version.
    """
    engine = Engine.load(engine_file)
    plan = engine.plan
    placement = placement_of(engine.name, plan, plan.settings)
    information = json.loads(engine.create_engine_inspector().get_engine_information("json"))
    return InspectAnswer(
        **placement.placement_fields,
        engine=str(engine_file),
        refittable=engine.refittable,
        stripped=engine.is_stripped,
        pools=dict(plan.pool_sizes),
        arithmetic=arithmetic_of(placement.layers, plan.settings, plan.operations),
        engine_layers=[_layer(one) for one in information["Layers"]],
        bindings=[_binding(engine, engine.get_tensor_name(index)) for index in range(engine.num_io_tensors)],
        profiles=plan.profiles,
        refit=refit_line(plan),
    )


def _layer(facts: Mapping[str, Any]) -> EngineLayer:
    """Return the record of a layer from the inspector's data."""
    own = _fields(EngineLayer, facts)
    own |= {
        which: [EngineTensor(**_fields(EngineTensor, one)) for one in own[which]] for which in ("inputs", "outputs")
    }
    own["weights"] = {name: EngineWeights(**_fields(EngineWeights, one)) for name, one in own["weights"].items()}
    names = {one.name for one in members(EngineLayer)}
    return EngineLayer(**own, parameters={name: value for name, value in facts.items() if name not in names})


def _fields(record: type, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a record from JSON with its names."""
    return {one.attribute: facts.get(one.name) for one in members(record)}


def _binding(engine: Engine, name: str) -> EngineBinding:
    return EngineBinding(
        name=name,
        mode=engine.get_tensor_mode(name).name.lower(),
        shape=engine.get_tensor_shape(name),
        type=engine.get_tensor_dtype(name).name,
        format=engine.get_tensor_format(name),
    )
