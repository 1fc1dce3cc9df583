"""Outputs that a board computed against those computed here, in INT8 codes where the board computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.answers.asked import quiet_log
from dryfit.answers.json_data import Count
from dryfit.attrs_classes import frozen
from dryfit.board.kit.manifest import KitBuild, KitInput
from dryfit.board.kit.on_board import generated_values
from dryfit.board.results import BoardResults
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.building import Builder
from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network

Array = np.ndarray[Any, Any]


@frozen
class BoardOutput:
    """An output of the board against the one computed here, on the same inputs.

    Attributes:
        build: id of the build.
        output: name of the output.
        elements: number of compared values.
        scale: INT8 scale of the tensor; None if it is not INT8 on the board.
        different: number of INT8 codes that differ; None without a scale.
        largest_codes: largest difference in codes; None without a scale.
        largest: largest absolute difference of the values.
        largest_value: largest absolute value computed here.
        notes: why values were not compared; "" if they were.
    """

    build: str
    output: str
    elements: Count
    scale: float | None
    different: Count | None
    largest_codes: Count | None
    largest: float
    largest_value: float
    notes: str = ""


def board_outputs(
    build: KitBuild, results: BoardResults, network: Network, config: BuilderConfig, design: Design
) -> tuple[list[BoardOutput], list[str]]:
    """Run a build here on the inputs that the kit generated on the board, and compare the outputs.

    Returns:
        (the comparisons, why outputs were not compared)

    Raises:
        ConfigError: A file of the results is damaged.
    """
    found = results.outputs(build)
    if not found or not build.inputs:
        return [], []
    if not any(one.startswith("--loadInputs=") for one in results.state(build).arguments):
        return [], ["outputs were not compared: trtexec ran on inputs of its own"]
    try:
        with quiet_log():
            engine = Builder().build_engine(network, config)
            here = engine.create_execution_context().run({one.name: input_values(one) for one in build.inputs})
    except DryfitError as error:
        return [], [f"outputs were not compared, as the model cannot be run here: {error}"]
    scales = design.network_scales.table.entries
    compared, notes = [], []
    for name, (shape, values) in found.items():
        if name not in here:
            notes.append(f"output {name!r} of the board is not an output of the model")
            continue
        own = here[name]
        if tuple(shape) != own.shape or len(values) != own.size:
            notes.append(f"output {name!r} has shape {tuple(shape)} on the board and {own.shape} here")
            continue
        forms = design.formats.forms.get(name)
        is_int8 = forms is not None and forms.produced.dtype is DataType.INT8
        scale = scales[name].scale if is_int8 and name in scales else None
        compared.append(_compared(build.id, name, np.array(values), own.astype(np.float64).reshape(-1), scale))
    return compared, notes


def input_values(one: KitInput) -> Array:
    """Return the values of an input that a kit generates on the board."""
    values = np.array(generated_values(one.type, int(np.prod(one.shape, dtype=np.int64)), one.seed))
    return values.astype(bool if one.type == "BOOL" else values.dtype).reshape(tuple(one.shape))


def _compared(build: str, name: str, board: Array, own: Array, scale: float | None) -> BoardOutput:
    both = np.isfinite(board) & np.isfinite(own)
    difference = np.abs(board[both] - own[both])
    different = largest = None
    if scale:
        codes = np.abs(np.rint(board[both] / scale) - np.rint(own[both] / scale))
        different, largest = int(np.count_nonzero(codes)), int(codes.max(initial=0))
    odd = int(np.count_nonzero(np.isfinite(board) != np.isfinite(own)))
    return BoardOutput(
        build=build,
        output=name,
        elements=own.size,
        scale=scale,
        different=different,
        largest_codes=largest,
        largest=float(difference.max(initial=0.0)),
        largest_value=float(np.abs(own[both]).max(initial=0.0)),
        notes=f"{odd} values are finite on one side only" if odd else "",
    )


def inputs_of(network: Network, shapes: Mapping[str, Sequence[int]], folder: str) -> list[KitInput] | None:
    """Return the inputs that a kit generates for a network; None if it cannot generate them.

    Args:
        network: the network.
        shapes: shape of each dynamic input in the measured runs.
        folder: folder of the files on the board.
    """
    found = []
    for index, tensor in enumerate(network.inputs):
        shape = tuple(shapes.get(tensor.name, tensor.shape))
        if (
            tensor.dtype.name not in ("FLOAT", "INT32", "INT64", "BOOL", "UINT8")
            or -1 in shape
            or tensor.is_shape_tensor
        ):
            return None
        found.append(KitInput(tensor.name, tensor.dtype.name, shape, f"{folder}/input-{index}.raw", index + 1))
    return found
