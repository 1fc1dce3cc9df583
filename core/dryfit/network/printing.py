"""A network as deterministic text: one line per layer."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.tensor import Tensor

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.network import Network

_PLAIN_NAME = re.compile(r"[\w./:-]+")
_PRINTED_ELEMENTS = 8


def network_text(network: Network) -> str:
    r"""Return the network as human-readable text.

    Each layer has the form `name: outputs with types and shapes = kind(inputs; parameters that differ from the
    default)`.

    Raises:
        NetworkError: Shapes cannot be inferred.

    Example:
        >>> network = Network("example")
        >>> x = network.add_input("x", DataType.FLOAT, (-1, 3))
        >>> network.mark_output(network.add_identity(x).get_output(0))
        >>> print(network_text(network))
        network example
        input x: FLOAT[-1, 3]
        "(Unnamed Layer* 0) [Identity]": "(Unnamed Layer* 0) [Identity]_output" FLOAT[-1, 3] = identity(x)
        output "(Unnamed Layer* 0) [Identity]_output"
    """
    lines = [f"network {_name(network.name)}"]
    lines += [f"input {_name(tensor.name)}: {_type(tensor)}{_wanted(tensor)}" for tensor in network.inputs]
    lines += [layer_text(layer) for layer in network.layers]
    lines += [f"output {_name(tensor.name)}{_wanted(tensor)}" for tensor in network.outputs]
    lines += [f"debug {_name(tensor.name)}" for tensor in network.debug_tensors]
    return "\n".join(lines)


def layer_text(layer: Layer) -> str:
    """Return the line of one layer."""
    outputs = ", ".join(f"{_name(tensor.name)} {_type(tensor)}" for tensor in layer.outputs)
    inputs = ", ".join("-" if tensor is None else _name(tensor.name) for tensor in layer.inputs)
    parameters = parameter_texts(layer)
    asked = [f"precision={layer.precision.name}"] if layer.precision else []
    asked += [f"output_type[{index}]={dtype.name}" for index, dtype in sorted(layer.output_types.items())]
    inside = "; ".join(part for part in (inputs, ", ".join(parameters + asked)) if part)
    return f"{_name(layer.name)}: {outputs}{' ' if outputs else ''}= {layer.kind}({inside})"


def parameter_texts(layer: Layer, printed_elements: int = _PRINTED_ELEMENTS) -> list[str]:
    """Return `name=value` of parameters that differ from the default; type and shape only for larger arrays."""
    return [
        f"{field.name}={_value(getattr(layer, field.name), printed_elements)}"
        for field in layer.parameters()
        if not _is_default(field, getattr(layer, field.name))
    ]


def _is_default(field: attrs.Attribute[Any], value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return False
    default: Any = field.default
    if hasattr(default, "factory"):
        default = default.factory()
    return bool(value == default and type(value) is type(default))


def _type(tensor: Tensor) -> str:
    return f"{tensor.spec.dtype.name}[{', '.join(map(str, tensor.shape))}]"


def _wanted(tensor: Tensor) -> str:
    """In which type the caller gives an input or finds an output, where that was stated."""
    return f" as {tensor.io_dtype.name}" if tensor.io_dtype is not None else ""


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) + '"'


def _value(value: Any, printed_elements: int) -> str:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, np.ndarray):
        kind = f"{DataType.from_numpy(value.dtype).name}[{', '.join(map(str, value.shape))}]"
        if value.size > printed_elements:
            return kind
        return f"{kind}{{{', '.join(str(element) for element in value.reshape(-1).tolist())}}}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_value(item, printed_elements) for item in value)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_value(item, printed_elements)}' for key, item in value.items())}}}"
    return repr(value)
