"""Segments handed to their target's compiler: what it is given, and what is refused before it is asked."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.builder.formats.choice import Formats
from dryfit.builder.fusion.groups import LayerPlace
from dryfit.builder.fusion.lowering import LoweredNetwork
from dryfit.builder.placement.target_variant import TargetVariant
from dryfit.engine.segment_program import program_array
from dryfit.errors import BuildError, DryfitError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer, copy_tensor_notes
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, Tensor, TensorSpec
from dryfit.plugins import registry
from dryfit.reference.inference import infer_specs
from dryfit.target.formats import LINEAR, TensorFormat
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array
from dryfit.target.segments import PlannedSegment
from dryfit.target.target import Target


class SegmentCompilation:
    """Compiles the segments of one build.

    Args:
        lowered: the engine's network.
        variants: device name to target.
        precisions: layer name to computation type.
        formats: forms of the tensors of the network that was cut.
        shapes: name of each network input to the shape that the engine is optimised for.
    """

    def __init__(
        self,
        lowered: LoweredNetwork,
        variants: Mapping[str, TargetVariant],
        precisions: Mapping[str, DataType],
        formats: Formats,
        shapes: Mapping[str, Shape],
    ) -> None:
        self._lowered = lowered
        self._variants = variants
        self._precisions = precisions
        self._formats_of = formats.forms
        self._shapes = shapes

    def program(self, group: LayerGroup, place: LayerPlace) -> Array:
        """The program of a segment: `uint8[bytes]`.

        Raises:
            BuildError: the segment has shapes that follow from data, or the compiler could not compile it.
            PluginError: the compiler gave something else than bytes.
        """
        self._require_shapes(group, f"segment {place.segment} of {place.device}")
        return program_array(target_bytes(COMPILER, self.planned(group, place)))

    def planned(self, group: LayerGroup, place: LayerPlace) -> PlannedSegment:
        """What the compiler is given."""
        variant = self._variants[place.device]
        network = segment_network(group, f"{self._lowered.network.name}, segment {place.segment}")
        border = [tensor.name for tensor in (*network.inputs, *network.outputs)]
        return PlannedSegment(
            device=place.device,
            platform=variant.platform,
            software=variant.software,
            index=place.segment,
            network=network,
            input_formats=self._formats(network.inputs, variant),
            output_formats=self._formats(network.outputs, variant),
            precisions={layer.name: self._precisions.get(layer.name, layer.outputs[0].dtype) for layer in group.layers},
            pool_limits={pool.name: variant.pool_limits.get(pool.name) for pool in variant.target.memory_pools},
            origins={name: self._lowered.origins[name][0] for name in border if name in self._lowered.origins},
        )

    def fix_shapes(self, network: Network) -> None:
        """Give the inputs of a segment's network the shapes that the engine is optimised for."""
        for tensor in network.inputs:
            if not tensor.spec.is_static:
                tensor.shape = self._optimum_specs[tensor.name].shape

    def _formats(self, tensors: Iterable[Tensor], variant: TargetVariant) -> Mapping[str, TensorFormat]:
        """The format of each of these tensors on the segment's device; LINEAR for what carries no data."""
        found = {}
        for tensor in tensors:
            origin, dtype = self._lowered.origins.get(tensor.name, ("", tensor.dtype))
            forms = self._formats_of.get(origin)
            of_type = [] if forms is None else forms.of_type(dtype, is_output=False)
            # Where no form is the device's own, it takes the tensor as another device left it: both lay it out alike.
            own_first = sorted(of_type, key=lambda form: form.device != variant.device)
            found[tensor.name] = own_first[0].layout if own_first else LINEAR
        return found

    def _require_shapes(self, group: LayerGroup, where: str) -> None:
        """Refuse shapes that follow from data. Other dynamic ones were told from what compilers take by partition."""
        declared = {tensor.name: tensor.spec for tensor in self._lowered.network.tensors}
        if not _dynamic(group, declared):
            return
        unknown = _dynamic(group, self._optimum_specs)
        if unknown:
            raise BuildError(
                "A compiled segment must not have data-dependent shapes",
                where=where,
                found=", ".join(unknown[:10]),
                allowed="shapes that depend only on input shapes",
                remedy="Move these layers to another device",
            )

    @functools.cached_property
    def _optimum_specs(self) -> Mapping[str, TensorSpec]:
        return infer_specs(self._lowered.network, self._shapes)


def _dynamic(group: LayerGroup, specs: Mapping[str, TensorSpec]) -> list[str]:
    """The tensors of a group whose shapes are not known, with what is known."""
    tensors = [*group.inputs, *(tensor for layer in group.layers for tensor in layer.outputs)]
    return [f"{tensor.name!r} {specs[tensor.name].shape}" for tensor in tensors if not specs[tensor.name].is_static]


def segment_network(group: LayerGroup, name: str) -> Network:
    """A network of a group's layers only, in their order, with the names that layers and tensors have.

    What is known before the run becomes a constant. Weights are shared with the group's layers.
    """
    network = Network(name)
    tensors: dict[str, Tensor] = {}
    for tensor in group.inputs:
        tensors[tensor.name] = _outer_tensor(network, tensor)
    for layer in group.layers:
        inputs = [None if tensor is None else tensors[tensor.name] for tensor in layer.inputs]
        new = network.add_layer(copy_layer(layer), inputs, [output.spec for output in layer.outputs])
        for old, output in zip(layer.outputs, new.outputs, strict=True):
            if output.name != old.name:
                network.rename_tensor(output, old.name)
            copy_tensor_notes(old, output)
            tensors[old.name] = output
    for tensor in group.outputs:
        network.mark_output(tensors[tensor.name])
    return network


def _outer_tensor(network: Network, tensor: Tensor) -> Tensor:
    value = tensor.spec.value
    if value is None:
        new = network.add_input(tensor.name, tensor.dtype, tensor.shape)
    else:
        producer = tensor.producer
        name = producer.name if producer is not None else tensor.name
        constant = Constant(name=name, shape=value.shape, weights=np.ascontiguousarray(value).reshape(value.shape))
        new = network.add_layer(constant, []).outputs[0]
        if new.name != tensor.name:
            network.rename_tensor(new, tensor.name)
    copy_tensor_notes(tensor, new)
    return new


@frozen
class SegmentFunction:
    """One of the functions that a target may have for its segments.

    Attributes:
        noun: what it is called.
        verb: what it does with a segment.
        of: the function of a target; None where it has none.
        place: where a target says that it is.
    """

    noun: str
    verb: str
    of: Callable[[Target], Callable[[PlannedSegment], bytes] | None]
    place: Callable[[Target], str | None]


COMPILER = SegmentFunction(
    "compiler", "compile", lambda target: target.compile_segment, lambda target: target.compile_segment_at
)
EXPORTER = SegmentFunction(
    "exporter", "write", lambda target: target.export_segment, lambda target: target.export_segment_at
)


def target_bytes(function: SegmentFunction, planned: PlannedSegment) -> bytes:
    """What a function of its target makes of a segment.

    Raises:
        BuildError: the function refuses the segment, or fails.
        PluginError: the target has no such function, or it gave something else than bytes.
    """
    target = registry.target(planned.device)
    where = f"segment {planned.index} of {planned.device}"
    make = function.of(target)
    if make is None:
        raise PluginError(
            f"The target has no segment {function.noun}",
            where=where,
            remedy=f"Move these layers to another device, or add a segment {function.noun} to the target",
        )
    try:
        made = make(planned)
    except DryfitError:
        raise
    except Exception as error:
        raise BuildError(
            f"The target's {function.noun} could not {function.verb} a segment",
            where=where,
            found=f"{type(error).__name__}: {error}",
            remedy="Move one of its layers to another device, or report it to the maintainers of the target",
        ) from error
    if not isinstance(made, bytes):
        raise PluginError(
            f"A target's {function.noun} must return bytes",
            where=f"{where}, {function.place(target)}",
            found=type(made).__name__,
            remedy=f"Return the bytes of the compiled segment from the target's {function.noun}",
        )
    return made
