"""Weights that are rounded by their effect on a layer's output, and biases that take back a shifted mean.

Rounding to the nearest code minimizes the error of each weight. What counts is the error of the sum of products, and
errors of weights whose inputs occur together can cancel. A bias takes back what rounding does to the mean. For one
output channel with rounded weights v, coded inputs x, and sums t that the weights w give for the inputs as they are,
the expected squared error is v C v - 2 c v but for a constant, where C is the covariance of x and c that of t with x:
(v - w) C (v - w) where the inputs are exact. So a shift of the inputs, as of centered ones, multiplies no error.
Coordinate descent changes one code after another by one step, as long as that lowers it; the order is fixed, so that
the result is too. The largest weight of a channel keeps its code, so that the device finds the same scale in the new
weights, and quantizes them to just these codes.

Source: Nagel et al., Up or Down? Adaptive Rounding for Post-Training Quantization (ICML 2020), equation 13, for the
objective; Nagel et al., Data-Free Quantization (ICCV 2019), section 4.2.2, for biases. The descent is our choice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
DAMPING = 0.2
"""Share of the mean variance of an input that is added to each: what few samples do not show must not be free. Measured
on YuNet for a DLA: with 0.02, the samples that select gain 0.3 dB less."""
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

    kernels: dict[str, Array]
    biases: dict[str, Array]


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


def parameters_of(model: ModelProto, external: ExternalData, layers: Collection[str]) -> Corrections:
    """Return the weights and biases of those convolutions of a model that have these names; zeros for no biases."""
    graph = ModelGraph(model, external)
    found = Corrections({}, {})
    for node in graph.nodes:
        name = node_name(node)
        kernel, bias = (graph.constant(node.input[1]), graph.bias(node)) if node.op_type == "Conv" else (None, None)
        if kernel is not None and bias is not None and name in layers:
            found.kernels[name] = kernel
            found.biases[name] = np.broadcast_to(bias, kernel.shape[:1]).astype(kernel.dtype)
    return found


def rounded_by_effect(network: Network, probe: LayerProbe, samples: Sequence[Feeds]) -> Corrections:
    """Return weights whose codes are chosen by the error of the layers' sums, and the biases that go with them.

    Args:
        network: the network of the probe, with weights and biases as they are.
        probe: engines of the quantized network, with `sums_of(network)` as taps.
        samples: inputs.
    """
    chosen = _convolutions(network, probe)
    fits = {name: _Fit(convolution) for name, (convolution, _) in chosen.items()}
    for feeds in samples:
        probe.run(feeds)
        for name, (convolution, layer) in chosen.items():
            source = convolution.connected_input(0).name
            scale = layer.inputs[source]
            codes = rounded(probe.exact(source), scale) if scale else probe.exact(source)
            fits[name].add(codes, fits[name].targets(probe.exact(convolution.get_output(0).name)))
    return _fitted(fits)


def _fitted(fits: Mapping[str, _Fit]) -> Corrections:
    """Return what layers are given by name."""
    kernels, biases = {}, {}
    for name, fit in fits.items():
        fit.solve()
        kernels[name], biases[name] = fit.kernel, fit.bias
    return Corrections(kernels, biases)


class _Fit:
    """Weights and biases of a convolution for coded inputs, by least squares over positions of samples.

    Args:
        layer: the convolution, with weights as they are.

    Attributes:
        layer: the same.
        kernel: weights on the grid of their codes, once solved.
        bias: biases, likewise.
    """

    def __init__(self, layer: Convolution) -> None:
        self.layer = layer
        assert layer.kernel is not None  # noqa: S101  such layers are left out
        self.kernel: Array = layer.kernel
        self.bias: Array = np.zeros(layer.num_output_maps, layer.kernel.dtype) if layer.bias is None else layer.bias
        self._count = 0
        self._sums: list[Array] = []

    def targets(self, sums: Array) -> Array:
        """Return what the sums should be at the chosen positions: float32[groups, K / groups, positions]."""
        flat = sums[0].reshape(self.layer.num_groups, sums.shape[1] // self.layer.num_groups, -1)
        return np.asarray(flat[..., :: max(1, flat.shape[2] // POSITIONS)], np.float32).copy()

    def add(self, inputs: Array, targets: Array) -> None:
        """Add the inputs of a sample, and what the sums should be."""
        columns = _columns(self.layer, inputs).astype(np.float32)
        turned = columns.transpose(0, 2, 1)
        found = [columns.sum(axis=2), targets.sum(axis=2), columns @ turned, targets @ turned]
        found = [one.astype(np.float64) for one in found]
        self._sums = [one + more for one, more in zip(self._sums, found, strict=True)] if self._sums else found
        self._count += columns.shape[2]

    def solve(self) -> None:
        """Find the weights and biases."""
        x, t, xx, tx = (one / self._count for one in self._sums)
        # A bias takes back what the means do, so that only what differs from them counts.
        covariance = xx - x[:, :, None] * x[:, None, :]
        wanted = tx - t[:, :, None] * x[:, None, :]
        groups = self.layer.num_groups
        rows = _descended(self.kernel.astype(np.float64), covariance, groups, wanted)
        found = rows.reshape(groups, -1, covariance.shape[1])
        bias = t - (found @ x[:, :, None])[..., 0]
        self.kernel, self.bias = rows.astype(self.kernel.dtype), bias.reshape(-1).astype(self.bias.dtype)


def corrected_biases(
    network: Network, probe: LayerProbe, samples: Sequence[Feeds], real: LayerProbe | None = None
) -> Corrections:
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
        real: probe of the same network with weights and biases as they were, which gives what is exact; None for the
            same probe.
    """
    real = real or probe
    chosen = {name: (one, layer) for name, (one, layer) in _convolutions(network, probe, any_inputs=True).items()}
    means: dict[str, list[Array]] = {name: [] for name in chosen}
    for feeds in samples:
        real.run(feeds)
        for name, (convolution, layer) in chosen.items():
            sums = convolution.get_output(0).name
            inputs = {
                source: rounded(real.exact(source), scale) if scale else real.exact(source)
                for source, scale in layer.inputs.items()
            }
            error = real.exact(sums).astype(np.float64) - probe.with_rounded_weights(inputs, sums)
            means[name].append(_channel_means(error))
    biases = {}
    for name, (convolution, _) in chosen.items() if len(samples) > 1 else ():
        shift = _sure_mean(means[name])
        if shift.any():
            biases[name] = _moved_bias(convolution, shift)
    return Corrections({}, biases)


def biases_corrected_in_sequence(
    network: Network, probe: LayerProbe, samples: Sequence[Feeds], real: LayerProbe | None = None
) -> Corrections:
    """Return biases like `corrected_biases`, each from the inputs that the quantized network gives its layer.

    The layers before are corrected already. So a mean error that an earlier layer leaves, because it was not sure or an
    activation or the end of a range made it, is taken back where it arrives.

    Args:
        network: the network of the probe.
        probe: engines of the quantized network, with `sums_of(network)` as taps.
        samples: inputs; of fewer than two, nothing is believed.
        real: as for `corrected_biases`.
    """
    real = real or probe
    convolutions = {layer.name: one for one, layer in _convolutions(network, probe, any_inputs=True).values()}
    sums_of_layer = {name: one.get_output(0).name for name, one in convolutions.items()}
    exact: list[dict[str, Array]] = []
    for feeds in samples:
        real.run(feeds)
        exact.append({name: _channel_means(real.exact(name)) for name in sums_of_layer.values()})
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
        if inputs == 1 and not any(layer.inputs.values()):
            continue  # nothing is rounded: the only weight of a channel is its largest one, which keeps its value
        is_2d = first.kernel.ndim == 4 and first.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN
        if any_inputs or (is_2d and inputs <= MOST_INPUTS and first.connected_input(0).name in layer.inputs):
            found[first.name] = (first, layer)
    return found


def _columns(layer: Convolution, values: Array) -> Array:
    """Return the inputs of a convolution's sums: [groups, C / groups * R * S, positions], of some of them."""
    before, after = layer.pre_padding, layer.post_padding
    padded = np.pad(values[0], [(0, 0), *zip(before, after, strict=True)])
    extents = [(size - 1) * step + 1 for size, step in zip(layer.kernel_size_nd, layer.dilation_nd, strict=True)]
    windows = sliding_window_view(padded, extents, axis=(1, 2))
    windows = windows[:, :: layer.stride_nd[0], :: layer.stride_nd[1]]
    windows = windows[..., :: layer.dilation_nd[0], :: layer.dilation_nd[1]]
    C, P, Q, R, S = windows.shape
    chosen = np.arange(P * Q)[:: max(1, P * Q // POSITIONS)]
    flat = windows[:, chosen // Q, chosen % Q].transpose(0, 2, 3, 1)
    return flat.reshape(layer.num_groups, C // layer.num_groups * R * S, -1)


def _descended(kernel: Array, covariance: Array, groups: int, wanted: Array) -> Array:
    """Return weights on the grid of their codes that minimize the squared error of the sums.

    Args:
        kernel: float64[K, C / groups, R, S].
        covariance: that of the inputs, float64[groups, D, D].
        groups: number of groups.
        wanted: covariance of what the sums should be with the inputs, float64[groups, K / groups, D].
    """
    rows = kernel.reshape(groups, kernel.shape[0] // groups, -1)
    largest = np.abs(rows).max(axis=2, keepdims=True)
    scales = int8_scales(largest).astype(np.float64)
    codes = np.clip(np.rint(rows / scales), -LARGEST, LARGEST)
    is_kept = np.abs(rows) >= largest
    trace = np.trace(covariance, axis1=1, axis2=2)
    damping = (DAMPING * trace / covariance.shape[1] + 1e-30)[:, None, None]
    damped = covariance + damping * np.eye(covariance.shape[1])
    gradient = codes * scales @ damped - (wanted + rows * damping)
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
    # The largest weight is stored as it is: the device finds the scale in it.
    found = np.where(is_kept, rows, codes * scales)
    return np.asarray(found.reshape(kernel.shape))
