"""Engine layers in the words of TensorRT's inspector, in which a DLA loadable is one layer.

dryfit's inspector reports the layers inside a loadable and the kinds of layers under their own names. Tools such as the
TensorRT engine explorer look for TensorRT's names and for `{ForeignNode[first...last]}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dryfit.engine.engine import Engine
    from dryfit.engine.execution_context import ExecutionContext


def engine_information(engine: Engine, context: ExecutionContext | None = None, *, major: int = 10) -> dict[str, Any]:
    """Return the layers, and the inputs and outputs, as TensorRT's inspector does in JSON.

    As in TensorRT, layers are objects only if the engine was built with detailed `profiling_verbosity`; otherwise they
    are names, which are empty with NONE.

    Args:
        engine: engine to describe.
        context: context whose input shapes are used; None for those of the engine.
        major: major version of TensorRT, which decides on the form.
    """
    layers: list[Any] = _described(engine, context)
    if engine.profiling_verbosity != "DETAILED":
        is_named = engine.profiling_verbosity != "NONE"
        layers = [layer["Name"] if is_named else "" for layer in layers]
    elif major >= 11:
        layers = [_with_split_formats(layer) for layer in layers]
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    if major < 11:
        return {"Layers": layers, "Bindings": names}
    return {"Layers": layers, "I/O Tensors": [_io_tensor(engine, context, name) for name in names]}


def engine_lines(engine: Engine, context: ExecutionContext | None = None) -> list[str]:
    """Return the layers, and the inputs and outputs, as TensorRT's inspector does in lines."""
    found = engine_information(engine, context)
    lines = [layer if isinstance(layer, str) else one_line(layer) for layer in found["Layers"]]
    return ["Layers:", *lines, "", "Bindings:", *found["Bindings"]]


def shown_names(engine: Engine) -> dict[str, str]:
    """Return the name under which TensorRT reports each engine layer that is part of a DLA loadable."""
    inside = {source: layer["Name"] for layer in _described(engine) for source in layer["SourceLayers"]}
    return {
        one.name: inside.get(one.source_layers[0], one.name)
        for one in engine.plan.operations
        if one.device == "DLA" and one.source_layers
    }


def _described(engine: Engine, context: ExecutionContext | None = None) -> list[dict[str, Any]]:
    inspector = engine.create_engine_inspector()
    inspector.execution_context = context
    return tensorrt_layers(inspector.get_engine_information("json"))


def _io_tensor(engine: Engine, context: ExecutionContext | None, name: str) -> dict[str, Any]:
    mode = engine.get_tensor_mode(name).name
    profiles = []
    for index in range(engine.num_optimization_profiles if mode == "INPUT" else 0):
        low, middle, high = map(list, engine.get_tensor_profile_shape(name, index))
        form = engine.get_tensor_format_desc(name)
        profiles.append({"MinShape": low, "OptShape": middle, "MaxShape": high, "Format": form})
    return {
        "Name": name,
        "IOMode": mode.title(),
        "DataType": engine.get_tensor_dtype(name).name,
        "Dimensions": list(engine.get_tensor_shape(name) if context is None else context.get_tensor_shape(name)),
        "Location": engine.get_tensor_location(name).name.title(),
        "IsShapeInferenceIO": engine.is_shape_inference_io(name),
        "ProfileInfo": profiles,
    }


def merged_layers(layers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return engine layers with those of one DLA loadable as one, `{ForeignNode[first...last]}`."""
    found: list[dict[str, Any]] = []
    group: list[dict[str, Any]] = []
    for layer in (*layers, {}):
        if group and (layer.get("Device"), layer.get("Segment")) != ("DLA", group[0]["Segment"]):
            found.append(_foreign_node(group, layers))
            group = []
        if layer.get("Device") == "DLA" and layer["LayerType"] != "ForeignNode":
            group.append(layer)
        elif layer:
            found.append(layer)
    return found


def _foreign_node(group: Sequence[dict[str, Any]], layers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    inside = {id(layer) for layer in group}
    made = {tensor["Name"]: tensor for layer in group for tensor in layer["Outputs"]}
    read = {tensor["Name"] for layer in layers if id(layer) not in inside for tensor in layer["Inputs"]}
    used = {tensor["Name"] for layer in group for tensor in layer["Inputs"]}
    sources = [name for layer in group for name in layer["SourceLayers"]]
    inputs: dict[str, Any] = {
        tensor["Name"]: tensor for layer in group for tensor in layer["Inputs"] if tensor["Name"] not in made
    }
    return {
        "Name": f"{{ForeignNode[{'...'.join(dict.fromkeys((sources[0], sources[-1])))}]}}",
        "LayerType": "DLA",
        "Inputs": list(inputs.values()),
        "Outputs": [tensor for name, tensor in made.items() if name in read or name not in used],
        "ParameterType": "ForeignNode",
        "TacticName": "",
        "StreamId": 0,
        "Metadata": "\x1e".join(layer["Metadata"] for layer in group if layer["Metadata"]),
        "Device": "DLA",
        "Segment": group[0]["Segment"],
        "Precision": group[0]["Precision"],
        "MultiplyAccumulates": sum(layer["MultiplyAccumulates"] for layer in group),
        "SourceLayers": sources,
    }


def _with_split_formats(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a layer with format and type of its tensors as two members, as TensorRT 11 has them."""

    def split(tensor: Mapping[str, Any]) -> dict[str, Any]:
        both = tensor.get("Format/Datatype", "")
        kind = next(
            (name for name in ("FP32", "FP16", "BF16", "Int8", "INT8", "Int32", "Int64", "Bool") if name in both), ""
        )
        rest = {key: value for key, value in tensor.items() if key != "Format/Datatype"}
        return {**rest, "Format": both, "Datatype": kind}

    return {
        **layer,
        "Inputs": [split(one) for one in layer["Inputs"]],
        "Outputs": [split(one) for one in layer["Outputs"]],
    }


def one_line(layer: Mapping[str, Any]) -> str:
    """Return an engine layer as a line."""

    def tensors(key: str) -> str:
        return ", ".join(f"{one['Name']} {one['Dimensions']}" for one in layer[key])

    flow = f"{tensors('Inputs')} -> {tensors('Outputs')}"
    return f"{layer['LayerType']}(Name: {layer['Name']}, Tactic: {layer['TacticName']}), {flow}"


def tensorrt_layers(information: str) -> list[dict[str, Any]]:
    """Return the engine layers of dryfit's inspector as TensorRT has them; a DLA loadable is one layer."""
    return [_in_its_words(layer) for layer in merged_layers(json.loads(information)["Layers"])]


_WORDS = {
    "SOFTMAX": "SoftMax",
    "ELEMENTWISE": "ElementWise",
    "LRN": "LRN",
    "NMS": "NMS",
    "TOPK": "TopK",
    "FOREIGNNODE": "ForeignNode",
}
"""Kinds of layers that TensorRT does not write as their words in capitals and small letters."""
_TYPES = {"INT8": "Int8", "HALF": "Half", "BF16": "BFloat16", "FLOAT": "Float"}
"""Types of weights in TensorRT's words: those that a layer computes in."""


def _in_its_words(layer: Mapping[str, Any]) -> dict[str, Any]:
    if not layer["SourceLayers"]:
        both = {tensor.get("Format/Datatype", "") for key in ("Inputs", "Outputs") for tensor in layer[key]}
        origin = "QDQ" if any("Int8" in text or "INT8" in text for text in both) else "REFORMAT"
        return {**layer, "LayerType": "Reformat", "ParameterType": "Reformat", "Origin": origin}
    kind = str(layer["ParameterType"])
    word = _WORDS.get(kind.upper(), kind if not kind.isupper() else kind.title().replace("_", ""))
    found = {**layer, "ParameterType": word}
    if word in ("Convolution", "Deconvolution"):
        kernels = {name: one for name, one in layer.get("Weights", {}).items() if name != "bias"}
        found.pop("Weights", None)
        if kernels:  # as the host has packed them, under a name and in a type of its own
            packed: Mapping[str, Any] = max(kernels.values(), key=lambda one: one["Count"])
            found["Weights"] = {**packed, "Type": _TYPES.get(layer["Precision"], packed["Type"])}
        relu = "ACTIVATION" in layer.get("Fused", ()) or "RELU" in layer.get("Fused", ())
        found.update(HasBias=int("Bias" in found), HasReLU=int(relu), Activation="RELU" if relu else "NONE")
    else:
        found.pop("Weights", None)
    return found
