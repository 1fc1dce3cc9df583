"""The part of a builder config that says which device each layer goes to."""

from __future__ import annotations

import weakref

from dryfit.builder.config.enumerations import DeviceType
from dryfit.builder.config.kernels import require_network
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.plugins import registry


class ConfigDevices:
    """The default device, and devices of single layers. Layers are remembered by identity."""

    def __init__(self) -> None:
        self._device_types: weakref.WeakKeyDictionary[Layer, str] = weakref.WeakKeyDictionary()
        self._default_device = str(DeviceType.GPU)

    @property
    def default_device_type(self) -> str:
        """The device of every layer that can run there and has no device of its own; the GPU in a new config."""
        return self._default_device

    @default_device_type.setter
    def default_device_type(self, device: str) -> None:
        self._default_device = registry.target(device).device

    def set_device_type(self, layer: Layer, device: str) -> None:
        """Put a layer on a device, whatever the default is.

        Raises:
            UnknownNameError: no installed package brings the device.
            ConfigError: the layer is in no network.
        """
        require_network(layer)
        self._device_types[layer] = registry.target(device).device

    def get_device_type(self, layer: Layer) -> str:
        """The device of a layer: its own, or else the default. Whether it can run there is not asked."""
        return self._device_types.get(layer, self._default_device)

    def is_device_type_set(self, layer: Layer) -> bool:
        """Whether the layer has a device of its own."""
        return layer in self._device_types

    def reset_device_type(self, layer: Layer) -> None:
        """Let the default decide on a layer's device again."""
        self._device_types.pop(layer, None)

    def explicit_device_types(self, network: Network) -> dict[str, str]:
        """Layer name to device, for the layers of a network that have a device of their own, in the network's order."""
        return {layer.name: self._device_types[layer] for layer in network.layers if layer in self._device_types}
