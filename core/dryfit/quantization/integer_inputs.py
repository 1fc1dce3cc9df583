"""INT8 inputs of networks that are not quantized explicitly: numbers that stand for real ones, or plain integers.

An implicitly quantized network may take INT8 codes in place of the real numbers that it computes on. Integers that meet
other integers, such as an INT8 constant that is added to them, are what they say, and are computed as integers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from dryfit.attrs_classes import frozen
from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.operand_types import operands_of_one_type


@frozen
class Meeting:
    """Where an INT8 input, or what is computed from it, meets integers that no such input brings.

    Attributes:
        layer: reads both.
        operand: the other operand, in words.
    """

    layer: Layer
    operand: str


def integer_inputs(network: Network) -> list[str]:
    """Names of the INT8 inputs that may stand for real numbers: no layer dequantizes them, and they meet no integers.

    Their ranges are what calibration finds, or the user sets. Takes time linear in layers for each such input.
    """
    found = _candidates(network)
    while met := _meetings(network, found):
        found = [name for name in found if name not in met]
    return found


def check_scaled_inputs(network: Network, scaled: Collection[str]) -> None:
    """Refuse INT8 inputs that stand for real numbers, as they have scales, and meet integers that do not.

    Raises:
        NetworkError: names the first such input, and where it meets integers.
    """
    for name, meeting in _meetings(network, scaled).items():
        raise NetworkError(
            "An INT8 input with a scale must not be combined with unscaled integers",
            where=f"input {name!r}",
            found=f"{meeting.operand}, which {meeting.layer.where} reads with it",
            remedy="Take the scale away (reset_dynamic_range) to compute on integers, give an operand that is an input "
            "a scale too, or make the other operand FP32",
        )


def check_unscaled_inputs(network: Network, computes_integers: Callable[[Layer], bool]) -> None:
    """Refuse INT8 inputs without a scale that reach a layer which can only mean the real numbers they would stand for.

    That is one that brings real operands, such as weights, or that runs on a device without integer arithmetic.

    Args:
        network: as it was placed; INT8 inputs that have scales are FLOAT in it.
        computes_integers: whether a layer runs on a device that has integer arithmetic.

    Raises:
        NetworkError: names the first such input, and the layer.
    """
    for name in integer_inputs(network):
        for layer in _readers_of_codes(network, name):
            real = [words for _, words, dtype in operands_of_one_type(layer, layer.inputs) if dtype.is_floating_point]
            if real or not computes_integers(layer):
                reason = f"with {real[0]}, which is real" if real else "on a device without integer arithmetic"
                raise unscaled_input(name, f"{layer.where} reads it {reason}")


def unscaled_input(name: str, found: str) -> NetworkError:
    """The error for an INT8 input without a scale where a real number can only be meant."""
    return NetworkError(
        "An INT8 input used as a floating-point value must have a scale",
        where=f"input {name!r}",
        found=found,
        allowed="a dynamic range for the input, or a floating-point type",
        source='TensorRT "Working with Quantized Types", explicit vs implicit quantization',
        remedy="Set the input's dynamic range (--ranges, or a calibration cache), with the flag INT8 "
        "(--precision int8,fp16) where layers are to compute in INT8; or give the input in FP16",
    )


def _readers_of_codes(network: Network, name: str) -> Iterator[Layer]:
    """The layers that read an INT8 input, or INT8 numbers that come from it."""
    codes = {name}
    for layer in network.layers:
        if any(tensor is not None and tensor.name in codes for tensor in layer.inputs):
            codes.update(tensor.name for tensor in layer.outputs if tensor.dtype is DataType.INT8)
            yield layer


def _candidates(network: Network) -> list[str]:
    return [
        tensor.name
        for tensor in network.inputs
        if tensor.dtype is DataType.INT8 and not any(layer.kind == "dequantize" for layer, _ in tensor.consumers)
    ]


def _meetings(network: Network, inputs: Collection[str]) -> dict[str, Meeting]:
    """Those of some INT8 inputs that meet integers which do not come from these inputs."""
    sources: dict[str, frozenset[str]] = {name: frozenset([name]) for name in inputs}
    found: dict[str, Meeting] = {}
    for layer in network.layers if inputs else ():
        read = frozenset[str]().union(*(sources.get(one.name, ()) for one in layer.connected_inputs))
        if not read:
            continue
        sources.update((tensor.name, read) for tensor in layer.outputs if tensor.dtype is DataType.INT8)
        integers = [one for one in operands_of_one_type(layer, layer.inputs) if one[-1] is DataType.INT8]
        foreign = [words for tensor, words, _ in integers if tensor is None or tensor.name not in sources]
        if foreign and len(foreign) < len(integers):
            found.update((name, Meeting(layer, foreign[0])) for name in read if name not in found)
    return found
