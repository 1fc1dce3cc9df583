"""Which layers devices compute on quantized codes: asked before a quantization or dequantization moves over a layer.

A move is no gain where the device that runs a layer in real numbers refuses it on codes, and it would have to run
elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.placement.assign import ask
from dryfit.network.copying import copy_layer
from dryfit.network.layer import Layer
from dryfit.network.layers.constant import Constant
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorSpec


class CodesOnDevices:
    """The judge of a build.

    Args:
        config: default and fallback device, platforms.
        own_devices: layer name to device, for the layers that have one of their own.
    """

    def __init__(self, config: BuilderConfig, own_devices: Mapping[str, str]) -> None:
        self._config = config
        self._own_devices = own_devices

    def __call__(self, layer: Layer, specs: Sequence[TensorSpec | None], real: Sequence[TensorSpec | None]) -> str:
        """Why the device that runs a layer in real numbers does not run it on codes; "" where it does."""
        own = self._own_devices.get(layer.name)
        devices = [own or self._config.default_device_type, self._config.fallback_device]
        for device in filter(None, dict.fromkeys(devices)):
            if ask(_alone(layer, real), device, self._config, self._own_devices):
                verdict = ask(_alone(layer, specs), device, self._config, self._own_devices)
                return "" if verdict else f"{device} does not run it on codes: {verdict}"
        return ""


def _alone(layer: Layer, specs: Sequence[TensorSpec | None]) -> Layer:
    """A copy of a layer in a network of its own."""
    network = Network("question")
    inputs = [None if spec is None else _source(network, f"input {index}", spec) for index, spec in enumerate(specs)]
    return network.add_layer(copy_layer(layer), inputs)


def _source(network: Network, name: str, spec: TensorSpec) -> Tensor:
    if spec.value is None:
        return network.add_input(name, spec.dtype, spec.shape)
    constant = network.add_layer(Constant(name=name, shape=spec.shape, weights=spec.value), [])
    return constant.outputs[0]
