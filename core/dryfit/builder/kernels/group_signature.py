"""What of a layer group decides how long its kernels take, as one line of text."""

from __future__ import annotations

from dryfit.network.printing import parameter_texts
from dryfit.network.tensor import Tensor
from dryfit.target.binding import is_activation
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Specs


def group_signature(group: LayerGroup, specs: Specs) -> str:
    """Kinds and parameters of the layers, how they are connected, types and shapes; no names, and no weights.

    Tensors are numbered: the group's inputs, then each layer's outputs. It is the same for groups that take the same
    time: `convolution(%0; kernel_size_nd=(3, 3)) + activation(%1) FLOAT[1, 3, 8, 8] -> FLOAT[1, 8, 6, 6]`.
    """
    made = [tensor for layer in group.layers for tensor in layer.outputs]
    numbers = {tensor.name: f"%{number}" for number, tensor in enumerate([*group.inputs, *made])}
    layers = []
    for layer in group.layers:
        inputs = ", ".join("-" if tensor is None else numbers[tensor.name] for tensor in layer.inputs)
        inside = "; ".join(part for part in (inputs, ", ".join(parameter_texts(layer, printed_elements=0))) if part)
        layers.append(f"{layer.kind}({inside})")
    inputs = ", ".join(_type(tensor, specs) for tensor in group.inputs)
    outputs = ", ".join(_type(tensor, specs) for tensor in group.outputs)
    return f"{' + '.join(layers)} {inputs} -> {outputs}"


def _type(tensor: Tensor, specs: Specs) -> str:
    spec = specs[tensor.name]
    text = f"{spec.dtype.name}[{', '.join(map(str, spec.shape))}]"
    return text if is_activation(tensor, specs) else f"constant {text}"
