"""The engine inspector, in the JSON of the version, with the words that tools of TensorRT look for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
        layers = self._layers()
        if not 0 <= layer_index < len(layers):
            report(self, "ERROR", f"get_layer_information: layer {layer_index} does not exist (0 to {len(layers) - 1})")
            return ""
        layer = layers[layer_index]
        if format.name == "JSON":
            return json.dumps(layer, indent=2)
        return layer if isinstance(layer, str) else one_line(layer)

    def get_engine_information(self, format: Any) -> str:
        """Return all engine layers, and the inputs and outputs."""
        layers = self._layers()
        engine = self._engine._core
        names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
        if format.name != "JSON":
            lines = [layer if isinstance(layer, str) else one_line(layer) for layer in layers]
            return "\n".join(["Layers:", *lines, "", "Bindings:", *names])
        if self._api.major < 11:
            return json.dumps({"Layers": layers, "Bindings": names}, indent=2)
        return json.dumps({"Layers": layers, "I/O Tensors": [self._io_tensor(name) for name in names]}, indent=2)

    def _layers(self) -> list[Any]:
        verbosity = self._engine._core.profiling_verbosity
        layers = tensorrt_layers(self._core.get_engine_information("json"))
        if verbosity == "NONE":
            return ["" for _ in layers]
        if verbosity == "LAYER_NAMES_ONLY":
            return [layer["Name"] for layer in layers]
        return [_split(layer) for layer in layers] if self._api.major >= 11 else layers

    def _io_tensor(self, name: str) -> dict[str, Any]:
        engine = self._engine
        profiles = []
        if engine.get_tensor_mode(name).name == "INPUT":
            for index in range(engine._core.num_optimization_profiles):
                low, middle, high = (list(one) for one in engine.get_tensor_profile_shape(name, index))
                form = engine.get_tensor_format_desc(name)
                profiles.append({"MinShape": low, "OptShape": middle, "MaxShape": high, "Format": form})
        return {
            "Name": name,
            "IOMode": engine.get_tensor_mode(name).name.title(),
            "DataType": engine.get_tensor_dtype(name).name,
            "Dimensions": list(engine.get_tensor_shape(name)),
            "Location": engine.get_tensor_location(name).name.title(),
            "IsShapeInferenceIO": engine._core.is_shape_inference_io(name),
            "ProfileInfo": profiles,
        }

    @property
    def error_recorder(self) -> Any:
        """The recorder of errors, or None."""
        return self._recorder

    @error_recorder.setter
    def error_recorder(self, recorder: Any) -> None:
        self._recorder = recorder


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
        "Name": f"{{ForeignNode[{sources[0]}...{sources[-1]}]}}",
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


def _split(layer: Mapping[str, Any]) -> dict[str, Any]:
    """A layer with format and type of its tensors as two members, as version 11 has them."""

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
        if kernels:  # as the host has packed them, under a name of its own
            found["Weights"] = max(kernels.values(), key=lambda one: one["Count"])
        relu = "ACTIVATION" in layer.get("Fused", ()) or "RELU" in layer.get("Fused", ())
        found.update(HasBias=int("Bias" in found), HasReLU=int(relu), Activation="RELU" if relu else "NONE")
    else:
        found.pop("Weights", None)
    return found
