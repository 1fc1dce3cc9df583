"""The networks whose published throughput the cost model is fitted on and held against; their weights are all zeros.

Shapes: ResNet-50 v1.5 and ResNet-34 from their papers; SSD-ResNet-34 at 1200x1200 from MLPerf inference: the third
stage keeps its extent, heads step by 3 and give maps of 50, 25, 13, 7, 3 and 3, and the two heads of a map are one
convolution. That makes 216 G multiply-accumulates an image, as published. SSD-MobileNetV1 at 300x300 from the paper of
MobileNets and TensorFlow's model of 2018-01-28: 1.2 G multiply-accumulates and 6.8 M parameters, as published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.target.question import Question
from dryfit.target.target import Platform
from dryfit_dla.sparsity import is_sparse_eligible


@attrs.define(eq=False)
class _Drawing:
    """A network that grows."""

    network: Network

    def convolution(
        self,
        x: Tensor,
        maps: int,
        window: int,
        stride: int = 1,
        padding: int | None = None,
        *,
        active: bool = True,
        groups: int = 1,
    ) -> Tensor:
        shape = (maps, x.shape[1] // groups, window, window)
        layer = self.network.add_convolution_nd(x, maps, (window, window), _weights(shape), _weights((maps,)))
        layer.num_groups = groups
        layer.stride_nd = (stride, stride)
        layer.padding_nd = (window // 2,) * 2 if padding is None else (padding,) * 2
        return self.active(layer.outputs[0]) if active else layer.outputs[0]

    def active(self, x: Tensor) -> Tensor:
        return self.network.add_activation(x, ActivationType.RELU).outputs[0]

    def sum(self, first: Tensor, second: Tensor) -> Tensor:
        return self.active(self.network.add_elementwise(first, second, ElementWiseOperation.SUM).outputs[0])

    def pooling(self, x: Tensor, kind: PoolingType, window: int, stride: int, padding: int) -> Tensor:
        layer = self.network.add_pooling_nd(x, kind, (window, window))
        layer.stride_nd, layer.padding_nd = (stride, stride), (padding, padding)
        return layer.outputs[0]

    def stem(self, x: Tensor) -> Tensor:
        return self.pooling(self.convolution(x, 64, 7, 2), PoolingType.MAX, 3, 2, 1)

    def basic_block(self, x: Tensor, maps: int, stride: int) -> Tensor:
        inner = self.convolution(x, maps, 3, stride)
        same = stride == 1 and x.shape[1] == maps
        across = x if same else self.convolution(x, maps, 1, stride, active=False)
        return self.sum(self.convolution(inner, maps, 3, active=False), across)

    def bottleneck(self, x: Tensor, maps: int, stride: int, *, first: bool) -> Tensor:
        inner = self.convolution(self.convolution(x, maps, 1), maps, 3, stride)
        across = self.convolution(x, 4 * maps, 1, stride, active=False) if first else x
        return self.sum(self.convolution(inner, 4 * maps, 1, active=False), across)

    def stages_34(self, x: Tensor, strides: Sequence[int]) -> Tensor:
        x = self.stem(x)
        for blocks, maps, stride in zip((3, 4, 6, 3), (64, 128, 256, 512), strides, strict=False):
            for block in range(blocks):
                x = self.basic_block(x, maps, stride if block == 0 else 1)
        return x


def _drawing(name: str, batch: int, height: int, width: int) -> tuple[_Drawing, Tensor]:
    network = Network(name)
    return _Drawing(network), network.add_input("image", DataType.FLOAT, (batch, 3, height, width))


def resnet_50(batch: int = 2) -> Network:
    """ResNet-50 v1.5 at 224x224, with average pooling of 7x7 and the classifier as a convolution of 1x1."""
    drawing, x = _drawing("ResNet-50 v1.5", batch, 224, 224)
    x = drawing.stem(x)
    for stage, (blocks, maps) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            x = drawing.bottleneck(x, maps, 2 if stage > 0 and block == 0 else 1, first=block == 0)
    x = drawing.pooling(x, PoolingType.AVERAGE, 7, 1, 0)
    drawing.network.mark_output(drawing.convolution(x, 1000, 1, active=False))
    return drawing.network


def ssd_resnet_34(batch: int = 1) -> Network:
    """SSD with a ResNet-34 backbone at 1200x1200, without the suppression of boxes."""
    drawing, x = _drawing("SSD-ResNet-34", batch, 1200, 1200)
    maps = [drawing.stages_34(x, (1, 2, 1))]
    for inner, outer, stride, padding in (
        *((256, 512, 2, 1), (256, 512, 2, 1), (128, 256, 2, 1)),
        *((128, 256, 2, 0), (128, 256, 1, 0)),
    ):
        maps.append(drawing.convolution(drawing.convolution(maps[-1], inner, 1), outer, 3, stride, padding))
    for one, boxes in zip(maps, (4, 6, 6, 6, 4, 4), strict=True):
        drawing.network.mark_output(drawing.convolution(one, boxes * (4 + 81), 3, 3, active=False))
    return drawing.network


def resnet_34_backbone(batch: int = 1) -> Network:
    """ResNet-34 at 1280x768 up to its third stage."""
    drawing, x = _drawing("ResNet-34 backbone", batch, 768, 1280)
    drawing.network.mark_output(drawing.stages_34(x, (1, 2, 2)))
    return drawing.network


def ssd_mobilenet_v1(batch: int = 2) -> Network:
    """SSD with a MobileNetV1 backbone at 300x300, without the suppression of boxes."""
    drawing, x = _drawing("SSD-MobileNetV1", batch, 300, 300)
    x = drawing.convolution(x, 32, 3, 2)
    maps = []
    for outer, stride in (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *((512, 1),) * 5,
        (1024, 2),
        (1024, 1),
    ):
        if outer == 1024 and stride == 2:
            maps.append(x)
        depthwise = drawing.convolution(x, x.shape[1], 3, stride, groups=x.shape[1])
        x = drawing.convolution(depthwise, outer, 1)
    maps.append(x)
    for inner, outer in ((256, 512), (128, 256), (128, 256), (64, 128)):
        maps.append(drawing.convolution(drawing.convolution(maps[-1], inner, 1), outer, 3, 2))
    for one, boxes in zip(maps, (3, 6, 6, 6, 6, 6), strict=True):
        drawing.network.mark_output(drawing.convolution(one, boxes * (4 + 91), 1, active=False))
    return drawing.network


def int8_specs(network: Network) -> Mapping[str, TensorSpec]:
    """The tensors of a network as they are kept when all of it is computed in INT8."""
    return {tensor.name: TensorSpec(tensor.shape, DataType.INT8) for tensor in network.tensors}


def layers_that_can_be_sparse(network: Network, platform: Platform, software: tuple[int, ...]) -> frozenset[str]:
    """The convolutions whose zeros the DLA would skip if their weights had the pattern 2:4, all computed in INT8."""
    questions = {
        layer.name: Question(layer, DataType.INT8, "DLA", platform.name, platform.family, software)
        for layer in network.layers
    }
    return frozenset(name for name, question in questions.items() if is_sparse_eligible(question))


def _weights(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Zeros that take no memory."""
    return np.broadcast_to(np.float32(0), shape)
