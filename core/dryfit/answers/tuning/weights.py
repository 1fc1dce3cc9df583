"""Weights that are rounded by their effect on a layer's output, and biases that take back a shifted mean.

Rounding to the nearest code minimizes the error of each weight. What counts is the error of the sum of products, and
errors of weights whose inputs occur together can cancel. For one output channel with weights w and rounded weights v,
the expected squared error of the output is (v - w) H (v - w), where H is the mean of the products of inputs. Coordinate
descent changes one code after another by one step, as long as that lowers it; the order is fixed, so that the result is
too. The largest weight of a channel keeps its code, so that the device finds the same scale in the new weights, and
quantizes them to just these codes.

Source: Nagel et al., Up or Down? Adaptive Rounding for Post-Training Quantization (ICML 2020), equation 13, for the
objective; Nagel et al., Data-Free Quantization (ICCV 2019), section 4.2.2, for biases. The descent is our choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx import ModelProto

from dryfit.answers.sensitivity.measurement import LayerProbe, MeasuredLayer
from dryfit.attrs_classes import frozen
from dryfit.calibration.output_noise import rounded
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.window_layer import PaddingMode
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, node_name
from dryfit.onnx.external_data import ExternalData
from dryfit.quantization.int8_weights import LARGEST, int8_scales
from dryfit.quantization.sample_arrays import Feeds

POSITIONS = 512
"""Positions of a sample's output that inputs are taken at, evenly spread. Our choice: neighbours tell little new."""
MOST_INPUTS = 2048
"""Layers whose output channels sum more products than this keep the nearest codes: H would take too long."""
DAMPING = 0.02
"""Share of the mean square of an input that is added to each: what few samples do not show must not be free. Our
choice."""
CONVINCING = 2.0
"""Standard errors that a mean error must differ from zero by. Our choice: one channel in twenty is believed wrongly."""
PASSES = 3
"""How often the codes of a channel are gone through. Measured: the third changes less than one code in a hundred."""


@frozen(eq=False)
class Corrections:
    """New parameters of convolutions, by layer name.

    Attributes:
        kernels: weights.
        biases: biases.
    """

    kernels: Mapping[str, Array]
    biases: Mapping[str, Array]


def with_corrections(model: ModelProto, external: ExternalData, corrections: Corrections) -> ModelProto:
    """Return a copy of a model with other parameters; a node without bias gets one."""
    graph = ModelGraph(model, external)
    for node in graph.nodes:
        name = node_name(node)
        if name in corrections.kernels:
            node.input[1] = graph.add_constant(f"{name}_weights_rounded", corrections.kernels[name])
        if name in corrections.biases:
            bias = graph.add_constant(f"{name}_bias_corrected", corrections.biases[name])
            del node.input[2:]
            node.input.append(bias)
    return graph.model()


def rounded_by_effect(network: Network, probe: LayerProbe, samples: Sequence[Feeds]) -> Corrections:
    """Return weights whose codes are chosen by the error of the layers' outputs.

    Args:
        network: the network of the probe.
        probe: engines of the quantized network.
        samples: inputs.
    """
    chosen = _convolutions(network, probe)
    products: dict[str, Array] = {}
    for feeds in samples:
        probe.run(feeds)
        for name, (convolution, layer) in chosen.items():
            (source,) = [one for one in layer.inputs if one == convolution.connected_input(0).name]
            values = probe.exact(source)
            codes = rounded(values, layer.inputs[source]) if layer.inputs[source] else values
            columns = _columns(convolution, codes)  # [groups, D, positions]
            outer = columns @ columns.transpose(0, 2, 1)
            products[name] = products[name] + outer if name in products else outer
    kernels = {}
    for name, (convolution, _) in chosen.items():
        kernel = convolution.kernel
        if kernel is not None:
            found = _descended(kernel.astype(np.float64), products[name], convolution.num_groups)
            if found is not None:
                kernels[name] = found.astype(kernel.dtype)
    return Corrections(kernels, {})


def corrected_biases(network: Network, probe: LayerProbe, samples: Sequence[Feeds]) -> Corrections:
    """Return biases that take back the mean error of the sums of each output channel of each layer.

    The error is that of the sums of products, before activation, range and rounding of the output: what rounded inputs
    and rounded weights cause. A sum moves with the bias one to one. Behind the activation it would not, and leaving out
    the values that an end holds, by what is found there, would leave out errors of one sign: of values that round to
    zero all positive ones. What the rounding of the output shifts is an error of the next layer's inputs.

    A mean error of a channel is believed that is `CONVINCING` times as large as its standard error over samples, whose
    values depend on each other too much to be counted one by one.

    Args:
        network: the network of the probe.
        probe: engines of the quantized network, with `sums_of(network)` as taps.
        samples: inputs; of fewer than two, nothing is believed.
    """
    chosen = {name: (one, layer) for name, (one, layer) in _convolutions(network, probe, any_inputs=True).items()}
    means: dict[str, list[Array]] = {name: [] for name in chosen}
    for feeds in samples:
        probe.run(feeds)
        for name, (convolution, layer) in chosen.items():
            sums = convolution.get_output(0).name
            error = probe.exact(sums).astype(np.float64) - probe.by_inputs_and_weights(layer, sums)
            means[name].append(_channel_means(error))
    biases = {}
    for name, (convolution, _) in chosen.items() if len(samples) > 1 else ():
        shift = _sure_mean(means[name])
        if shift.any():
            biases[name] = _moved_bias(convolution, shift)
    return Corrections({}, biases)


def biases_corrected_in_sequence(network: Network, probe: LayerProbe, samples: Sequence[Feeds]) -> Corrections:
    """Return biases like `corrected_biases`, each from the inputs that the quantized network gives its layer.

    The layers before are corrected already. So a mean error that an earlier layer leaves, because it was not sure or an
    activation or the end of a range made it, is taken back where it arrives.

    Args:
        network: the network of the probe.
        probe: engines of the quantized network, with `sums_of(network)` as taps.
        samples: inputs; of fewer than two, nothing is believed.
    """
    convolutions = {layer.name: one for one, layer in _convolutions(network, probe, any_inputs=True).values()}
    sums_of_layer = {name: one.get_output(0).name for name, one in convolutions.items()}
    exact: list[dict[str, Array]] = []
    for feeds in samples:
        probe.run(feeds)
        exact.append({name: _channel_means(probe.exact(name)) for name in sums_of_layer.values()})
    last = _last_readers(network, probe)
    now: list[dict[str, Array]] = [dict(feeds) for feeds in samples]
    biases: dict[str, Array] = {}
    for index, layer in enumerate(probe.layers):
        inputs = [_inputs_of(layer, one, probe) for one in now]
        convolution = convolutions.get(layer.name)
        if convolution is not None and len(samples) > 1:
            name = sums_of_layer[layer.name]
            sums = [probe.with_rounded_weights(one, name) for one in inputs]
            shift = _sure_mean([means[name] - _channel_means(one) for means, one in zip(exact, sums, strict=True)])
            if shift.any():
                biases[convolution.name] = _moved_bias(convolution, shift)
            along = shift.astype(np.float32).reshape(1, -1, *[1] * (sums[0].ndim - 2))
            inputs = [{**one, name: each + along} for one, each in zip(inputs, sums, strict=True)]
        for one, given in zip(now, inputs, strict=True):
            found = given.get(layer.output)
            found = probe.with_rounded_weights(given, layer.output) if found is None else found
            one[layer.output] = rounded(found, layer.output_scale) if layer.output_scale else found
            for name in [each for each in one if last.get(each, len(probe.layers)) <= index]:
                del one[name]
    return Corrections({}, biases)


def _inputs_of(layer: MeasuredLayer, now: Mapping[str, Array], probe: LayerProbe) -> dict[str, Array]:
    """Return what a layer reads in the quantized network; layers between that are not in INT8 are run for it."""
    found = {}
    for name, scale in layer.inputs.items():
        values = now[name] if name in now else probe.with_rounded_weights(now, name)
        found[name] = rounded(values, scale) if scale else values
    return found


def _last_readers(network: Network, probe: LayerProbe) -> dict[str, int]:
    """Return the index of the last layer of a probe that reads a tensor, where nothing else reads it."""
    inside = {name for layer in probe.layers for name in layer.layers}
    read_outside = {tensor.name for one in network.layers if one.name not in inside for tensor in one.connected_inputs}
    found = {name: index for index, layer in enumerate(probe.layers) for name in layer.inputs}
    return {name: index for name, index in found.items() if name not in read_outside}


def _channel_means(values: Array) -> Array:
    """Return the mean of each channel, float64[C]."""
    return np.asarray(np.mean(values, axis=tuple(axis for axis in range(values.ndim) if axis != 1), dtype=np.float64))


def _sure_mean(errors: Sequence[Array]) -> Array:
    """Return the mean error of each channel over samples, and zero where it may be chance."""
    every = np.array(errors)
    mean, deviation = every.mean(axis=0), every.std(axis=0, ddof=1)
    return np.where(np.abs(mean) > CONVINCING * deviation / np.sqrt(len(every)), mean, 0.0)


def _moved_bias(convolution: Convolution, shift: Array) -> Array:
    dtype = np.float32 if convolution.kernel is None else convolution.kernel.dtype
    bias = np.zeros(convolution.num_output_maps) if convolution.bias is None else convolution.bias
    return (bias.astype(np.float64) + shift).astype(dtype)


def sums_of(network: Network) -> list[str]:
    """Return the names of the tensors that convolutions write."""
    return [layer.get_output(0).name for layer in network.layers if isinstance(layer, Convolution)]


def _convolutions(
    network: Network, probe: LayerProbe, *, any_inputs: bool = False
) -> dict[str, tuple[Convolution, MeasuredLayer]]:
    """Return the convolutions that INT8 layers begin with, and whose parameters are those of an ONNX node."""
    by_name = {layer.name: layer for layer in network.layers}
    found = {}
    for layer in probe.layers:
        members = [by_name[name] for name in layer.layers if name in by_name]
        first = members[0] if members else None
        if not isinstance(first, Convolution) or first.kernel is None or any(one.kind == "scale" for one in members):
            continue
        inputs = first.kernel[0].size
        is_2d = first.kernel.ndim == 4 and first.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN
        if any_inputs or (is_2d and inputs <= MOST_INPUTS and first.connected_input(0).name in layer.inputs):
            found[first.name] = (first, layer)
    return found


def _columns(layer: Convolution, values: Array) -> Array:
    """Return the inputs of a convolution's sums at some positions: float64[groups, C / groups * R * S, positions]."""
    before, after = layer.pre_padding, layer.post_padding
    padded = np.pad(values[0], [(0, 0), *zip(before, after, strict=True)])
    extents = [(size - 1) * step + 1 for size, step in zip(layer.kernel_size_nd, layer.dilation_nd, strict=True)]
    windows = sliding_window_view(padded, extents, axis=(1, 2))
    windows = windows[:, :: layer.stride_nd[0], :: layer.stride_nd[1]]
    windows = windows[..., :: layer.dilation_nd[0], :: layer.dilation_nd[1]]
    C, P, Q, R, S = windows.shape
    step = max(1, P * Q // POSITIONS)
    flat = windows.transpose(1, 2, 0, 3, 4).reshape(P * Q, C, R, S)[::step]
    return flat.transpose(1, 2, 3, 0).reshape(layer.num_groups, C // layer.num_groups * R * S, -1).astype(np.float64)


def _descended(kernel: Array, products: Array, groups: int) -> Array | None:
    """Return weights on the grid of their codes that minimize the error; None if the nearest codes do.

    Args:
        kernel: float64[K, C / groups, R, S].
        products: sums of products of inputs, float64[groups, D, D].
        groups: number of groups.
    """
    rows = kernel.reshape(groups, kernel.shape[0] // groups, -1)
    largest = np.abs(rows).max(axis=2, keepdims=True)
    scales = int8_scales(largest).astype(np.float64)
    codes = np.clip(np.rint(rows / scales), -LARGEST, LARGEST)
    nearest = codes.copy()
    is_kept = np.abs(rows) >= largest
    trace = np.trace(products, axis1=1, axis2=2)
    damped = products + (DAMPING * trace / products.shape[1] + 1e-30)[:, None, None] * np.eye(products.shape[1])
    gradient = (codes * scales - rows) @ damped
    for _ in range(PASSES):
        changed = False
        for index in range(rows.shape[2]):
            best = -gradient[:, :, index] / (damped[:, index, index][:, None] * scales[:, :, 0])
            step = np.clip(np.rint(best), -1, 1)
            limit = np.abs(codes[:, :, index] + step) > LARGEST
            far = np.abs(codes[:, :, index] + step - rows[:, :, index] / scales[:, :, 0]) > 1
            step[is_kept[:, :, index] | limit | far] = 0
            if step.any():
                changed = True
                codes[:, :, index] += step
                gradient += (step * scales[:, :, 0])[:, :, None] * damped[:, index][:, None, :]
        if not changed:
            break
    if (codes == nearest).all():
        return None
    # The largest weight is stored as it is: the device finds the scale in it.
    found = np.where(is_kept, rows, codes * scales)
    return found.reshape(kernel.shape)
