"""Who gives a tensor and who takes it, in which types and formats they can: what the choice of formats is made from."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.formats.forms import (
    BETWEEN_SEGMENTS,
    DEVICE_BORDER,
    DIRECT_IO,
    NETWORK_INPUT,
    NETWORK_OUTPUT,
    NO_COPIER,
    TYPE_CHANGE,
    TensorForm,
)
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.target_variant import Specs, TargetVariant, knowing, known_shape
from dryfit.builder.precision.chosen import Precisions
from dryfit.errors import UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Shape, Tensor
from dryfit.rule import Rule
from dryfit.target.formats import LINEAR, TensorFormat


def caller_device(config: BuilderConfig, devices_in_use: Iterable[str]) -> str:
    """Where the caller of an engine keeps its inputs and outputs, and who makes copies.

    The default device; where that reads its own formats only, the fallback device or else the first in use that reads
    LINEAR.
    """
    fallback = [config.fallback_device] if config.fallback_device else []
    candidates = [*dict.fromkeys([config.default_device_type, *fallback, *devices_in_use])]
    plain = (device for device in candidates if _reads_linear(TargetVariant.chosen(config, device), None))
    return next(plain, candidates[0])


def _reads_linear(variant: TargetVariant, dtype: DataType | None) -> bool:
    """Whether a device reads row-major tensors of a type; of any type for None."""
    formats = variant.target.input_formats
    lists = formats.values() if dtype is None else [formats.get(dtype, ())]
    return not formats or any(one.name == LINEAR.name for some in lists for one in some)


@frozen
class FormatSide:
    """Someone who gives or takes a tensor.

    Attributes:
        device, dtype: where, and in which type.
        layouts: formats that can be given or taken, with the bytes that each costs inside the device.
        segment: index of the segment; -1 for the caller.
        forbids_copy: why no copy is allowed between it and the other side; "" if one is.
        is_chosen: whether the user chose the formats, so that they are used as they are where that costs no more.
    """

    device: str
    dtype: DataType
    layouts: Mapping[TensorFormat, int]
    segment: int = -1
    forbids_copy: str = ""
    is_chosen: bool = False

    def forms(self) -> list[tuple[TensorForm, int]]:
        """Each form that can be given or taken, with its bytes inside the device."""
        return [(TensorForm(self.device, self.dtype, layout), cost) for layout, cost in self.layouts.items()]


def _layouts(
    variant: TargetVariant, shape: Shape, dtype: DataType, reader_kinds: frozenset[str]
) -> dict[TensorFormat, int]:
    """The formats that a device gives a tensor in, or takes it in for readers of these kinds, with the bytes inside."""
    native = variant.native_format(shape, dtype)
    if not reader_kinds:
        formats = variant.output_formats(shape, dtype)
        return {one: 0 if one.name == native.name else variant.size_bytes(one, shape, dtype) for one in formats}
    return {
        # What only some kinds of layer read, they read as it is.
        one: 0 if one.name == native.name or one.reader_kinds else variant.size_bytes(native, shape, dtype)
        for one in variant.input_formats(shape, dtype)
        if not one.reader_kinds or reader_kinds <= one.reader_kinds
    } or {native: 0}


@frozen
class _Neighbours:
    """Devices of the segments that a segment reads from, and of those that read from it."""

    before: set[str] = attrs.field(factory=set)
    after: set[str] = attrs.field(factory=set)


def _neighbouring_devices(partition: Partition) -> Sequence[_Neighbours]:
    """The neighbours of each segment."""
    neighbours = [_Neighbours() for _ in partition.runs]
    for run in partition.runs:
        for layer in run.layers:
            here = partition.segments[layer.name]
            for reader in (reader for tensor in layer.outputs for reader, _ in tensor.consumers):
                there = partition.segments.get(reader.name, here)
                if there != here:
                    neighbours[here].after.add(partition.runs[there].device)
                    neighbours[there].before.add(run.device)
    return neighbours


class Sides:
    """Finds the sides of each tensor of a network that was cut into segments.

    Args:
        partition: the segments.
        precisions: computation types.
        variants: device name to target, also for the caller's device.
        specs: tensor name to spec at the shapes that count.
        config: fallback device, flags.
    """

    def __init__(
        self,
        partition: Partition,
        precisions: Precisions,
        variants: Mapping[str, TargetVariant],
        specs: Specs,
        config: BuilderConfig,
    ) -> None:
        self.partition = partition
        self._precisions = precisions
        self._variants = variants
        self._specs = specs
        self._caller = variants[caller_device(config, (run.device for run in partition.runs))]
        self._is_direct = config.get_flag(BuilderFlag.DIRECT_IO)
        self._default = config.default_device_type
        flags = {DataType.HALF: BuilderFlag.FP16, DataType.INT8: BuilderFlag.INT8, DataType.BF16: BuilderFlag.BF16}
        self._permitted = [dtype for dtype, flag in flags.items() if config.get_flag(flag)]
        self._neighbours = _neighbouring_devices(partition)
        self._layouts: dict[tuple[str, Shape, DataType, frozenset[str]], Mapping[TensorFormat, int]] = {}

    @property
    def caller(self) -> str:
        """The device on which the caller of the engine keeps inputs and outputs."""
        return self._caller.device

    def giver(self, tensor: Tensor) -> FormatSide:
        """Who gives a tensor: a layer, or for a network input the caller."""
        if tensor.producer is None:
            dtype = self._precisions.network_input_type(tensor)
            return self._caller_side(tensor, dtype)
        producer = tensor.producer
        segment = self.partition.segments[producer.name]
        dtype = self._precisions.stored_type(producer, tensor.output_index)
        return self._device_side(tensor, segment, dtype)

    def giver_name(self, tensor: Tensor) -> str:
        """Who gives a tensor, in words."""
        return f"network input {tensor.name!r}" if tensor.producer is None else repr(tensor.producer.name)

    def taker_names(self, tensor: Tensor) -> Mapping[tuple[int, DataType], str]:
        """Segment and type of each side to who takes a tensor there first, in words."""
        names: dict[tuple[int, DataType], str] = {}
        for layer, index in tensor.consumers:
            segment = self.partition.segments.get(layer.name, -1)
            if segment >= 0:
                names.setdefault((segment, self._precisions.input_type(layer, index)), repr(layer.name))
        if tensor.is_network_output:
            names[-1, self._precisions.network_output_type(tensor)] = f"network output {tensor.name!r}"
        return names

    def key(self, tensor: Tensor) -> Hashable:
        """What the choice depends on: it is the same for tensors with one key, but for names."""
        segments, precisions = self.partition.segments, self._precisions
        if tensor.producer is None:
            giver, dtype = -1, precisions.network_input_type(tensor)
        else:
            giver, dtype = segments[tensor.producer.name], precisions.stored_type(tensor.producer, tensor.output_index)
        readers = {
            (segments.get(layer.name, -1), precisions.input_type(layer, index), layer.kind): None
            for layer, index in tensor.consumers
        }
        taken = precisions.network_output_type(tensor) if tensor.is_network_output else None
        border = tensor.allowed_formats if giver < 0 or taken else None
        return giver, dtype, tensor.dtype, known_shape(self._specs[tensor.name]), taken, border, *readers

    def takers(self, tensor: Tensor, giver: FormatSide) -> list[FormatSide]:
        """Everyone who reads the tensor, one for each segment and type, but not those who share the giver's form.

        Neither do those count who are in one loadable with the giver: they are `types_inside`.
        """
        takers: dict[tuple[int, DataType], FormatSide] = {}
        readers: dict[int, list[Layer]] = {}
        for layer, _ in tensor.consumers:
            readers.setdefault(self.partition.segments.get(layer.name, -1), []).append(layer)
        for layer, index in tensor.consumers:
            segment = self.partition.segments.get(layer.name, -1)
            dtype = self._precisions.input_type(layer, index) if segment >= 0 else tensor.dtype
            is_inside = segment == giver.segment and (dtype is giver.dtype or self._is_loadable(segment))
            if segment < 0 or is_inside or (segment, dtype) in takers:
                continue
            takers[segment, dtype] = self._device_side(tensor, segment, dtype, readers[segment])
        if tensor.is_network_output:
            dtype = self._precisions.network_output_type(tensor)
            takers[-1, dtype] = self._caller_side(tensor, dtype)
        return list(takers.values())

    def types_inside(self, tensor: Tensor, giver: FormatSide) -> list[TensorForm]:
        """The native forms of the other types in which the tensor is read inside the loadable that gives it.

        The device converts them as part of its work, without a copy.
        """
        if giver.segment < 0 or not self._is_loadable(giver.segment):
            return []
        variant, shape = self._variants[giver.device], known_shape(self._specs[tensor.name])
        types = dict.fromkeys(
            self._precisions.input_type(layer, index)
            for layer, index in tensor.consumers
            if self.partition.segments.get(layer.name) == giver.segment
        )
        return [
            TensorForm(giver.device, dtype, variant.native_format(shape, dtype))
            for dtype in types
            if dtype is not giver.dtype
        ]

    def size_bytes(self, tensor: Tensor, form: TensorForm) -> int:
        """Bytes that a tensor takes in a form."""
        owner = knowing(self._variants, form.layout, [form.device])
        return owner.size_bytes(form.layout, known_shape(self._specs[tensor.name]), form.dtype)

    def rule(self, giver: FormatSide, taker: FormatSide) -> Rule:
        """Why a copy stands between the two."""
        if giver.segment < 0:
            return NETWORK_INPUT
        if taker.segment < 0:
            return NETWORK_OUTPUT
        if giver.device == taker.device:
            return TYPE_CHANGE
        leaves = giver.device == self._default and self._default in self._neighbours[taker.segment].after
        returns = taker.device == self._default and self._default in self._neighbours[giver.segment].before
        return BETWEEN_SEGMENTS if leaves or returns else DEVICE_BORDER

    def _is_loadable(self, segment: int) -> bool:
        return self._variants[self.partition.runs[segment].device].target.has_loadables

    def _device_side(self, tensor: Tensor, segment: int, dtype: DataType, readers: Sequence[Layer] = ()) -> FormatSide:
        """What a segment gives, or takes for these of its layers; it has at least one reader of what it takes."""
        variant = self._variants[self.partition.runs[segment].device]
        shape, kinds = known_shape(self._specs[tensor.name]), frozenset([reader.kind for reader in readers])
        key = (variant.device, shape, dtype, kinds)
        if key not in self._layouts:
            self._layouts[key] = _layouts(variant, shape, dtype, kinds)
        return FormatSide(variant.device, dtype, self._layouts[key], segment)

    def _caller_side(self, tensor: Tensor, dtype: DataType) -> FormatSide:
        """What the caller of the engine gives or takes.

        Raises:
            UnknownNameError: no device in use has a format that the user allows.
        """
        reason = ""
        if not _reads_linear(self._caller, dtype):
            reason = NO_COPIER.told(
                f"no device can make the copy: {self._caller.device} accepts only its own formats. Allow "
                f"fallback, or give the tensor a type and allowed_formats of it: {self._border_words(tensor)}"
            )
        if self._is_direct and tensor.allowed_formats:
            reason = DIRECT_IO.told(
                "the flag DIRECT_IO forbids a copy where the tensor's formats were set; "
                f"{self._default} has {self._border_words(tensor)} there"
            )
        if tensor.allowed_formats is None:
            return FormatSide(self._caller.device, dtype, {LINEAR: 0}, forbids_copy=reason)
        known = self._known_formats(dtype)
        if not tensor.allowed_formats & known.keys():
            unknown = ", ".join(sorted(tensor.allowed_formats))
            raise UnknownNameError(f"tensor format of {dtype.text}", unknown, known, where=f"tensor {tensor.name!r}")
        shape = known_shape(self._specs[tensor.name])
        allowed = {
            layout: 0
            for name, layout in known.items()
            if name in tensor.allowed_formats and layout.allows(shape, dtype)
        }
        return FormatSide(
            self._caller.device, dtype, allowed or {LINEAR: 0}, forbids_copy=reason, is_chosen=bool(allowed)
        )

    def _border_words(self, tensor: Tensor) -> str:
        """The types and formats that the default device reads from the caller, or gives, of the permitted types."""
        target = self._variants.get(self._default, self._caller).target
        table = target.input_formats if tensor.producer is None else target.output_formats
        words = [
            f"{dtype.text} in {', '.join(one.name for one in formats)}"
            for dtype, formats in table.items()
            if formats and dtype in (DataType.FLOAT, tensor.dtype, *self._permitted)
        ]
        return "; ".join(words) or "no format"

    def _known_formats(self, dtype: DataType) -> dict[str, TensorFormat]:
        """Name to format, of all devices in use, that tensors of a type can have."""
        known = {LINEAR.name: LINEAR}
        for variant in self._variants.values():
            formats = (variant.target.input_formats.get(dtype, ()), variant.target.output_formats.get(dtype, ()))
            for one in itertools.chain(*formats):
                known.setdefault(one.name, one)
        return known
