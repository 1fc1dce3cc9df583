"""Convolution in groups of four channels, as ResNeXt has them: several groups share each vector."""

from __future__ import annotations

from typing import cast

import numpy as np

from dryfit.network.layers.convolution import Convolution
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS, FP32
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.descriptors import Image, Table
from dryfit_cpu.kernels import convolution, epilogues
from dryfit_cpu.kernels.constants import constant_weights
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.dense_operands import DenseOperands
from dryfit_cpu.kernels.operands import Workspace, bound_array, image_of, require_extents
from dryfit_cpu.kernels.window_products import WindowInput
from dryfit_cpu.kernels.windows import Window
from dryfit_cpu.steps import NativeStep

_CONVOLVE = NativeFunction("grouped_convolution", "convolve")
_GROUP, _PACKED = 4, 16


def _pack(group: LayerGroup) -> dict[str, Array]:
    """The kernel `[K / 16, places, inputs of a group, 16]` and the bias, with the scales of the group folded in."""
    weights, bias = epilogues.folded(group, *constant_weights(cast("Convolution", group.main)))
    blocks = weights.reshape(len(weights) // _PACKED, _PACKED, _GROUP, -1).transpose(0, 3, 2, 1)
    return {"weights": np.ascontiguousarray(blocks, np.float32), "bias": bias.astype(np.float32)}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """Groups of four inputs and four outputs, over one or two axes, and whole packed vectors of them."""
    layer = group.main
    if not isinstance(layer, Convolution) or len(layer.kernel_size_nd) > 2 or not convolution.accepts(group, specs):
        return False
    inputs, outputs = specs[cast("Tensor", layer.inputs[0]).name].shape[1], layer.num_output_maps
    return inputs == outputs == _GROUP * layer.num_groups and outputs % _PACKED == 0


@kernel(
    "cpu.grouped_convolution",
    kinds="convolution",
    data_types=FLOATS,
    accepts=_accepts,
    fuses=epilogues.fuses,
    pack=_pack,
    packed_parameters=("kernel", "bias", "scale", "shift", "power"),
    workspace_bytes=convolution.workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
    priority=10,
)
def convolve_groups(binding: Binding) -> NativeStep:
    """A step that brings the input into order where it is not, and convolves."""
    layer, epilogue = cast("Convolution", binding.group.main), epilogues.required_epilogue(binding)
    source = cast("Tensor", layer.inputs[0]).name
    window = Window.of(layer, binding.specs[source], binding.specs[layer.outputs[0].name])
    dense = DenseOperands.of(binding, epilogue)
    read = WindowInput.of(window, bound_array(binding, source), Workspace(binding), binding.num_threads)
    require_extents(dense.output.shape, window.output, "output of a window")
    N, C, H, W = window.output
    require_extents((window.input[1], C % _PACKED), (C, 0), "channels of a window in groups")
    places = np.array(read.segments, np.int64)
    weights = binding.weight("weights", (C // _PACKED, len(places), _GROUP, _PACKED))
    bias = binding.weight("bias", (C,))
    work = _CONVOLVE.work(
        chunks_for(N * C * H * W * len(places), binding.num_threads),
        input=Image(read.address, FP32, *read.strides, 4, N, H, W, C),
        places=Table(places.ctypes.data, len(places)),
        weights=weights.ctypes.data,
        bias=bias.ctypes.data,
        output=dense.output.image,
        residual=image_of(dense.residual, FP32),
        finish=epilogue.finish(bypasses=True),
    )
    step = NativeStep(binding.group.name, [*read.work, work], [binding, *read.keeps, places, weights, bias])
    return dense.around([step])
