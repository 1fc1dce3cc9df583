"""A Q/DQ model as implicit quantization has it: an FP32 model, a scale for each tensor, a precision for each layer.

What the Q/DQ model computes in INT8 is computed in INT8, where the scales for it are there; everything else is set to
real numbers, so that the builder quantizes nothing that the model's author did not. A layer that gives real numbers
and reads INT8, such as the last one, has no scale for its output: it is computed in real numbers.

The files of an implicit model: for scripts made for NVIDIA's qdq-translator under its names, and dryfit's own.

    NAME_noqdq.onnx                        the FP32 model
    NAME_precision_config.json             scales, and the nodes that are not INT8
    NAME_precision_config_calib.cache      the scales as TensorRT's calibration cache
    NAME_precision_config_layer_arg.txt    the nodes that are not INT8, for trtexec --layerPrecisions
    NAME_ranges.txt                        the scales as largest magnitudes, for `dryfit build --ranges`
    NAME_scales.json                       the scales with their origins, dryfit's cache
    NAME_layer_precisions.txt              every layer's precision, for `dryfit build --layer-precisions @FILE`
    NAME_layer_output_types.txt            output types of layers, where there are any

Source: NVIDIA/Deep-Learning-Accelerator-SW, tools/qdq-translator 0.2.0: names and contents of the first four.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnx import ModelProto

from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.builder.config.layer_rules import PRECISION_WORDS, layer_list
from dryfit.errors import CalibrationError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.model_file import write_model
from dryfit.onnx.translation.agreement import ProvedTensor
from dryfit.onnx.translation.carried_scales import CarriedScales, UnequalScales, carried_scales
from dryfit.onnx.translation.implicit_precisions import ImplicitPrecision, layer_precisions
from dryfit.onnx.translation.plain_model import PlainModel, plain_model
from dryfit.quantization.cache_forms import cache_form
from dryfit.quantization.cache_header import CacheHeader
from dryfit.quantization.int8_steps import is_inside_step, is_sum
from dryfit.quantization.stored_ranges import StoredRange, StoredRanges


@frozen
class ImplicitPolicy:
    """What is done where the two forms differ.

    Attributes:
        unequal: scales that differ around a concatenation, or of one tensor.
        is_strict: whether a layer that loses its INT8 is an error.
        clips_weights: whether weights with the code -128 get -127.
        rounds_all: whether tensors that the Q/DQ model rounds inside a step of the implicit build, such as between a
            convolution and its ReLU, are rounded there too: their layers get the output type INT8, and are not fused
            with the next.
        real_type: type of the layers that are not computed in INT8.
    """

    unequal: UnequalScales = UnequalScales.LARGEST
    is_strict: bool = False
    clips_weights: bool = False
    rounds_all: bool = False
    real_type: DataType = DataType.FLOAT


@frozen(eq=False)
class ImplicitModel:
    """What came of it.

    Attributes:
        plain: the model without Q/DQ, and what it said.
        network: imported from it, with ranges and precisions set.
        carried: the scale of each tensor.
        layers: the precision of each layer that computes on floating-point values.
    """

    plain: PlainModel
    network: Network
    carried: CarriedScales
    layers: Sequence[ImplicitPrecision]

    @property
    def model(self) -> ModelProto:
        """The FP32 model."""
        return self.plain.model

    @property
    def compared(self) -> dict[str, ProvedTensor]:
        """The tensors that are quantized in both forms."""
        return {
            name: ProvedTensor(self.plain.quantized[name], scale, max(self.plain.scales[name]))
            for name, scale in self.carried.scales.items()
            if name in self.plain.quantized
        }

    @property
    def unit_scaled(self) -> list[str]:
        """The tensors that a weighted layer adds to another one unrounded, in one step, and that have no scale.

        DLA 3.13 and newer find such a scale themselves where it is stated as 1, while TensorRT computes the layers in
        FP16 where it is missing. Source: NVIDIA/Deep-Learning-Accelerator-SW, qdq-translator.
        """
        return [
            tensor.name
            for tensor in self.network.tensors
            if tensor.producer is not None
            and tensor.producer.sums_products
            and is_inside_step(tensor)
            and is_sum(tensor.consumers[0][0])
            and not self.carried.has_scale(tensor.name)
        ]

    @property
    def lost(self) -> list[ImplicitPrecision]:
        """The layers that are INT8 in the Q/DQ model and real here."""
        return [one for one in self.layers if one.missing]


def implicit_model(
    model: ModelProto,
    external: ExternalData,
    policy: ImplicitPolicy | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    folder: Path | None = None,
) -> ImplicitModel:
    """Translate a Q/DQ model.

    Args:
        model: stays as it is.
        external: where its external data may lie.
        policy: what is done where the forms differ.
        shapes: input name to its shape, for dynamic inputs.
        folder: that of the external data.

    Raises:
        OnnxImportError: quantization that implicit scales cannot say, or the model cannot be imported.
        CalibrationError: the policy refuses scales that differ, or layers that lose their INT8; all are named.
    """
    chosen = policy or ImplicitPolicy()
    plain = plain_model(model, external, clips_weights=chosen.clips_weights)
    network = network_from_onnx(plain.model, folder=folder)
    for name, shape in (shapes or {}).items():
        network.tensor(name).shape = tuple(shape)
    network.refresh_shapes()
    carried = carried_scales(network, plain.scales, plain.dequantized, unequal=chosen.unequal)
    if chosen.unequal is UnequalScales.REFUSE and carried.conflicts:
        raise CalibrationError(
            "Tensors that must share one scale have different scales",
            found="\n  " + "\n  ".join(map(str, carried.conflicts)) + "\n",
            remedy="Quantize them with the same scale, or use the largest",
        )
    layers = layer_precisions(network, plain, carried, chosen.real_type, rounds_all=chosen.rounds_all)
    lost = [one for one in layers if one.missing]
    if chosen.is_strict and lost:
        raise CalibrationError(
            "INT8 layers of the Q/DQ model have missing scales",
            found="; ".join(f"layer {one.layer!r}: {', '.join(map(repr, one.missing))}" for one in lost),
            remedy="Quantize these tensors too, or run the layers in FP32 or FP16",
        )
    for tensor, scale in carried.scales.items():
        if network.find_tensor(tensor) is not None:
            network.tensor(tensor).dynamic_range = (-127.0 * scale, 127.0 * scale)
    by_name = {layer.name: layer for layer in network.layers}
    for one in layers:
        by_name[one.layer].precision = one.precision
        if one.output_type is not None:
            by_name[one.layer].set_output_type(0, one.output_type)
    return ImplicitModel(plain, network, carried, layers)


_WORDS = {dtype: word for word, dtype in PRECISION_WORDS.items()}


@frozen
class WrittenFiles:
    """What was written.

    Attributes:
        files: path to what the file is for.
        notes: what the files have no words for.
    """

    files: Mapping[Path, str]
    notes: list[str]


def write_implicit_files(
    translated: ImplicitModel,
    folder: Path,
    name: str,
    header: CacheHeader,
    external: ExternalData,
    source: Path,
    *,
    unit_scales: bool = False,
) -> WrittenFiles:
    """Write all of them.

    Args:
        translated: what they say.
        folder: is made where it does not exist.
        name: the beginning of the files' names.
        header: the first line of the cache.
        external: where external data of the Q/DQ model lie.
        source: the folder of the Q/DQ model.
        unit_scales: whether `translated.unit_scaled` get the scale 1 in the first four files.

    Raises:
        CalibrationError: a name does not fit a form, or a file cannot be written.
        OnnxImportError: the model cannot be written.
    """
    notes: list[str] = []
    scales = _model_scales(translated, unit_scales=unit_scales)
    real = [one for one in translated.layers if one.precision is not DataType.INT8]
    nodes = list(dict.fromkeys(node for one in real for node in one.nodes))
    word = "fp16" if not real else _WORDS[real[0].precision]
    stem = f"{name}_precision_config"
    config = {"int8_tensor_scales": scales, "fp16_nodes": nodes}
    entries = [StoredRange.of_scale(tensor, scale) for tensor, scale in scales.items()]
    carried = translated.carried
    own = [
        StoredRange.of_scale(tensor, scale, origin=carried.entries[tensor].origin)
        for tensor, scale in carried.scales.items()
        if tensor in carried.entries
    ]
    cache = StoredRanges(entries, "tensorrt", header.text)
    texts = {
        f"{stem}.json": (json.dumps(config, indent=4).encode(), "scales, and nodes that are not INT8"),
        f"{stem}_calib.cache": (cache_form("tensorrt").write(cache), "TensorRT's calibration cache"),
        f"{stem}_layer_arg.txt": (_list([(one, word) for one in nodes], notes), "trtexec --layerPrecisions"),
        f"{name}_ranges.txt": (cache_form("ranges").write(StoredRanges(own, "ranges")), "dryfit build --ranges"),
        f"{name}_scales.json": (
            cache_form("json").write(StoredRanges(own, "json", header.text)),
            "dryfit's cache, with origins",
        ),
        f"{name}_layer_precisions.txt": (
            _list([(one.layer, _WORDS[one.precision]) for one in translated.layers], notes),
            "dryfit build --layer-precisions",
        ),
    }
    typed = [(one.layer, _WORDS[one.output_type]) for one in translated.layers if one.output_type is not None]
    if typed:
        texts[f"{name}_layer_output_types.txt"] = (_list(typed, notes), "dryfit build --layer-output-types")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, (data, _) in texts.items():
            write_atomically(folder / file, [data])
    except OSError as error:
        raise CalibrationError(
            "The files cannot be written",
            where=str(folder),
            found=error.strerror or str(error),
            remedy="Check the folder and its permissions",
        ) from error
    model = folder / f"{name}_noqdq.onnx"
    write_model(translated.model, model, external, source)
    return WrittenFiles({model: "FP32 model", **{folder / file: use for file, (_, use) in texts.items()}}, notes)


def _model_scales(translated: ImplicitModel, *, unit_scales: bool) -> dict[str, float]:
    """The scales of the model's own values, in the order of the network."""
    graph = translated.model.graph
    values = {info.name for info in graph.input} | {value for node in graph.node for value in node.output}
    units = translated.unit_scaled if unit_scales else ()
    found = {name: 1.0 if name in units else one.scale for name, one in translated.carried.entries.items()}
    return {name: scale for name, scale in found.items() if scale is not None and name in values}


def _list(pairs: list[tuple[str, str]], notes: list[str]) -> bytes:
    text, unfit = layer_list(pairs)
    notes += [
        f"layer {name!r} is omitted from a list: names with commas or single quotes are not supported" for name in unfit
    ]
    return text.encode()
