"""The files of an implicit model: for scripts made for NVIDIA's qdq-translator under its names, and dryfit's own.

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
from collections.abc import Mapping
from pathlib import Path

import attrs

from dryfit.atomic_file import write_atomically
from dryfit.builder.placement.layer_list import PRECISION_WORDS, layer_list
from dryfit.errors import CalibrationError
from dryfit.network.data_types import DataType
from dryfit.onnx.editing.writing import write_model
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.translation.implicit_model import ImplicitModel
from dryfit.quantization.cache_forms import cache_form
from dryfit.quantization.cache_header import CacheHeader
from dryfit.quantization.stored_ranges import StoredRange, StoredRanges

_WORDS = {dtype: word for word, dtype in PRECISION_WORDS.items()}


@attrs.frozen
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
            "The files cannot be written", where=str(folder), found=error.strerror or str(error)
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
    notes += [f"layer {name!r} is left out of a list: names with commas or single quotes do not fit" for name in unfit]
    return text.encode()
