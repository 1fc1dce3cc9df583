"""Large batches, a few images at a time: what a layer writes is then still in a cache when the next one reads it.

A MobileNetV2 in FP32 writes up to 5.6 MiB for each image and layer. With 32 images every layer reads from memory what
the one before wrote to it, and the whole took 11.2 ms an image on an AMD EPYC, where a single image takes 7.0 ms. So a
batch that is too large for the caches is cut into slices, which go through layer after layer, in the same memory.

Towards the end of most networks images get smaller and weights larger: a slice of one image would read 5 MB of weights
for the classes of one image. So a network is cut into stretches, each with slices as large as its layers allow:

    stretch 1   112 x 112 to 14 x 14      image 0 | image 1 | image 2 | ...
    stretch 2   7 x 7                     images 0 to 7               | ...
    stretch 3   classes                   all images

With several threads each takes whole slices, so that an image stays in the caches of one core. Where two threads shared
each image, a ResNet-50 in INT8 with 32 images took 300 ms while both cores had one last-level cache, and 395 ms while
each had its own (two virtual processors of an AMD EPYC, which the host moves); now it takes 290 ms with either. Threads
share slices only where there are fewer than threads.

Nobody sees a difference: kernels give an image the same bits in any batch.

That goes on for as long as images do not meet: every tensor that depends on the inputs has the batch as its first axis,
and no layer looks along it. From the first operation on where they meet, such as a reshape whose extents name the whole
batch, all images run at once.
"""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import EllipsisType

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.engine.binding import BoundEngine, Observe, Show, specs_for
from dryfit.engine.buffers import new_array, size_of
from dryfit.engine.plan import Plan
from dryfit.engine.resolved_operation import ResolvedOperation
from dryfit.errors import DryfitError
from dryfit.forking import watch_forks
from dryfit.network.layer import Layer
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.normalization import Normalization, Softmax
from dryfit.network.layers.reduction import Reduce
from dryfit.network.layers.slice import Shuffle
from dryfit.network.network import Network
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.reference.inference import infer_with_values
from dryfit.target.group import SegmentGroup
from dryfit.target.kernels import Array, HostLayout
from dryfit.target.machine_code import usable_processors
from dryfit.target.waking import WakingElsewhere

SLICE_BYTES = 4 * 2**20
"""What the largest operation of a slice should read and write at most. Our choice: a thread's share of a last-level
cache is 2 to 16 MiB on today's servers, and no network was slower with less, down to single images."""

_LEAST_SHARE = 4

_FILLING = 4
"""So many slices for each thread leave less than a fifth of the threads' time unused, also if they divide unevenly."""

_BY_IMAGE = frozenset(
    {
        "activation", "cast", "convolution", "deconvolution", "dequantize", "elementwise", "fully_connected",
        "identity", "lrn", "padding", "parametric_relu", "pooling", "quantize", "resize", "scale", "select", "squeeze",
        "unary", "unsqueeze",
    }
)  # fmt: skip
"""Kinds that compute each image from that image, if their inputs and outputs have the batch as their first axis."""

_WEIGHTED = frozenset({"convolution", "deconvolution", "fully_connected"})
"""Kinds whose first input alone may be of the batch."""

_CHECKS: dict[type[Layer], Callable[..., bool]] = {
    Concatenation: lambda layer, _: layer.axis != 0,
    Normalization: lambda layer, _: not layer.axes & 1,
    Reduce: lambda layer, _: not layer.axes & 1,
    Shuffle: lambda layer, _: all(order[:1] in ((), (0,)) for order in (layer.first_transpose, layer.second_transpose)),
    Softmax: lambda layer, _: not layer.axes & 1,
    MatrixMultiply: lambda layer, specs: all(spec.rank > 2 for spec in specs) or (
        layer.op0 is MatrixOperation.NONE and layer.inputs[1].is_constant
    ),
}  # fmt: skip
"""Kinds of which it depends: on the layer, and the specs of its inputs."""


@frozen(eq=False)
class Stretch:
    """Consecutive operations that run once for each slice of the batch.

    Attributes:
        lanes: the operations, bound to the shapes of a slice, once for each slice that runs at the same time.
        bind: binds them once more, for a slice that all threads share.
        slices: the images of each, in order; `...` for the whole batch, which need not be the first axis of tensors.
        reads: names of the tensors that come from outside.
        writes: names of the tensors that later stretches or callers read.
    """

    lanes: Sequence[BoundEngine]
    bind: Callable[[], BoundEngine]
    slices: Sequence[slice | EllipsisType]
    reads: Sequence[str]
    writes: Sequence[str]

    @functools.cached_property
    def shared(self) -> BoundEngine:
        """The operations for one slice after the other."""
        return self.lanes[0] if len(self.lanes) == 1 else self.bind()


class _SliceThreads:
    """Threads that run slices for all contexts of the process; started when they are first needed."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        watch_forks(self)

    def after_fork_in_child(self) -> None:
        """Begin anew: a child has none of its parent's threads."""
        self._pool = ThreadPoolExecutor(usable_processors(), "dryfit-slices")
        self._waking = WakingElsewhere()

    def ask(self, job: Callable[[], None]) -> Future[None]:
        """Let a thread run a job.

        Raises:
            RuntimeError: No thread can be had.
        """
        self._waking.leads()
        return self._pool.submit(self._run, job)

    def _run(self, job: Callable[[], None]) -> None:
        with self._waking.works():
            job()


_slice_threads = _SliceThreads()


class SlicedEngine:
    """An engine whose operations are bound to slices of a batch.

    Args:
        stretches: in order.
        stored: arrays of the whole batch: the outputs, and what stretches hand over.
        outputs: names of the outputs.
    """

    def __init__(self, stretches: Sequence[Stretch], stored: Mapping[str, Array], outputs: Sequence[str]) -> None:
        self.stretches = stretches
        self._stored = stored
        self._outputs = outputs

    def run(
        self,
        inputs: Mapping[str, Array],
        observe: Observe | None = None,
        show: Show | None = None,  # noqa: ARG002  whoever shows tensors binds the whole batch
    ) -> dict[str, Array]:
        """Run the engine once; as `BoundEngine.run`.

        While an observer is told of layers, once for each slice, slices run one after the other, by all threads.

        Raises:
            ExecutionError: As `BoundEngine.run` does, in any of the threads.
        """
        given = {**self._stored, **inputs}
        for stretch in self.stretches:
            left = deque(stretch.slices)
            lane, *others = stretch.lanes if observe is None else [stretch.shared]
            asked: list[Future[None]] = []
            try:
                with contextlib.suppress(RuntimeError):  # no thread can be had: who asked works alone
                    for other in others:
                        job = functools.partial(self._run_slices, stretch, other, left, given)
                        asked += [_slice_threads.ask(job)]
                self._run_slices(stretch, lane, left, given, observe)
            finally:
                wait([one for one in asked if not one.cancel()])
            for one in asked:
                if not one.cancelled():
                    one.result()
        return {name: self._stored[name] for name in self._outputs}

    def _run_slices(
        self,
        stretch: Stretch,
        lane: BoundEngine,
        left: deque[slice | EllipsisType],
        given: Mapping[str, Array],
        observe: Observe | None = None,
    ) -> None:
        """Run slices that no other lane has taken, until none are left."""
        try:
            while (here := _taken(left)) is not None:
                found = lane.run({name: given[name][here] for name in stretch.reads}, observe)
                for name in stretch.writes:
                    np.copyto(self._stored[name][here], found[name])
        finally:
            left.clear()  # after an error, no lane goes on


def _taken(left: deque[slice | EllipsisType]) -> slice | EllipsisType | None:
    """The next slice; None where another lane took the last one."""
    try:
        return left.popleft()
    except IndexError:
        return None


def bind_engine(
    plan: Plan,
    operations: Sequence[ResolvedOperation],
    input_shapes: Mapping[str, Shape],
    num_threads: int,
    *,
    shows_tensors: bool = False,
) -> BoundEngine | SlicedEngine:
    """Bind an engine to input shapes: to those of slices where the batch is large and can be cut.

    Raises:
        ExecutionError: As `BoundEngine` does.
    """
    specs = specs_for(plan, input_shapes)
    outputs = [tensor.name for tensor in plan.network.outputs]
    batch, images = _batch_of(input_shapes), list[int]()
    if batch > 1 and not shows_tensors and not any(isinstance(one.group, SegmentGroup) for one in operations):
        apart = names_apart(plan.network, specs, batch)
        if all(name in apart or _is_made(name, operations) for name in outputs):
            images = images_of_operations(batch, operations, specs, apart, num_threads)
    of_slices = {count: _specs_of_slice(plan.network, specs, batch, count)[0] for count in set(images) - {batch}}
    if not of_slices:
        return BoundEngine(plan, operations, specs, num_threads, shows_tensors=shows_tensors)
    stored, stretches = set(outputs), list[Stretch]()
    known = {name for name, spec in specs.items() if spec.value is not None}
    starts = [index for index, count in enumerate(images) if index == 0 or count != images[index - 1]]
    for start, end in zip(starts, [*starts[1:], len(images)], strict=True):
        here, later = operations[start:end], operations[end:]
        made = {tensor.name for one in here for tensor in one.group.outputs}
        read = {tensor.name for one in here for tensor in one.group.inputs} - made - known
        wanted = {*outputs, *(tensor.name for one in later for tensor in one.group.inputs)}
        # An output may be known before the run, or be an input: then it is nobody's, and the last stretch hands it on.
        nobodys = {name for name in outputs if not later and not _is_made(name, operations)}
        reads, writes = sorted(read | (nobodys - known)), sorted((made & wanted) | nobodys)
        stored.update(writes)
        count = images[start]
        shapes = of_slices.get(count) or specs
        slices = [...] if count == batch else [slice(first, first + count) for first in range(0, batch, count)]
        bind = functools.partial(BoundEngine, plan, here, shapes, inputs=reads, outputs=writes)
        at_once = slices_at_once(len(slices), num_threads)
        lanes = [bind(num_threads // at_once) for _ in range(at_once)]
        stretches.append(Stretch(lanes, functools.partial(bind, num_threads), slices, reads, writes))
    layouts = {name: placement.host_layout for name, placement in plan.placements.items()}
    arrays = {name: new_array(specs[name], layouts.get(name, HostLayout.LINEAR)) for name in sorted(stored)}
    return SlicedEngine(stretches, arrays, outputs)


def slices_at_once(slices: int, num_threads: int) -> int:
    """How many slices run at the same time, each with an equal number of threads.

    No more than leave less than a fifth of the threads' time unused at the end.
    """
    fitting = (
        lanes
        for lanes in range(min(slices, num_threads), 0, -1)
        if num_threads % lanes == 0 and (slices % lanes == 0 or slices >= _FILLING * lanes)
    )
    return next(fitting)


def _is_made(name: str, operations: Sequence[ResolvedOperation]) -> bool:
    return any(tensor.name == name for one in operations for tensor in one.group.outputs)


def _batch_of(shapes: Mapping[str, Shape]) -> int:
    """The first extent of all inputs; 0 where they have none in common."""
    extents = {shape[0] if len(shape) > 1 else 0 for shape in shapes.values()}
    return extents.pop() if len(extents) == 1 else 0


def images_of_operations(
    batch: int,
    operations: Sequence[ResolvedOperation],
    specs: Mapping[str, TensorSpec],
    apart: Container[str],
    num_threads: int = 1,
) -> list[int]:
    """The images of the slices that each operation runs in: divisors of the batch that never fall from one to the next.

    What an operation or a later one reads and writes for a slice is small enough, unless it is a single image. Slices
    grow where at least four times as many images fit: changing them costs a copy, and what is in the caches. Where a
    batch is cut at all, each thread gets at least one slice.

    Args:
        batch: images in all.
        operations: in order.
        specs: of every tensor, for the whole batch.
        apart: names of the tensors of which a slice's images need no others; all operations run on the whole batch from
            the first on that makes another.
        num_threads: for the whole batch.
    """
    end = next((index for index, one in enumerate(operations) if not _are_apart(one, apart)), len(operations))
    sizes = [_fitting_images(batch, one, specs) for one in operations[:end]]
    share = _divisor(batch, max(1, batch // num_threads))
    is_shared = all(size == batch for size in sizes) or slices_at_once(batch // share, num_threads) == 1
    fitting = [batch] * (len(operations) - end)
    for size in reversed(sizes):
        fitting.append(min(size, batch if is_shared else share, *fitting[-1:]))
    images: list[int] = []
    for count in reversed(fitting):
        images.append(images[-1] if images and count < _LEAST_SHARE * images[-1] and count != batch else count)
    return images


def _are_apart(operation: ResolvedOperation, apart: Container[str]) -> bool:
    return all(tensor.name in apart for tensor in operation.group.outputs)


def _fitting_images(batch: int, operation: ResolvedOperation, specs: Mapping[str, TensorSpec]) -> int:
    """The largest divisor of the batch with which what an operation reads and writes is small enough; at least 1.

    The whole batch where that is far less than would fit, as one image of a prime number of small ones.
    """
    tensors = {tensor.name: tensor for tensor in (*operation.group.inputs, *operation.group.outputs)}
    read_and_written = [specs[name] for name, tensor in tensors.items() if not tensor.is_constant]
    size = max(1, sum(size_of(spec) for spec in read_and_written if spec.is_static))
    fitting = min(batch, max(1, SLICE_BYTES * batch // size))
    images = _divisor(batch, fitting)
    return images if images * _LEAST_SHARE >= fitting else batch


def _divisor(batch: int, most: int) -> int:
    """The largest divisor of a batch that is no larger than `most`."""
    return next(images for images in range(most, 0, -1) if batch % images == 0)


def names_apart(network: Network, specs: Mapping[str, TensorSpec], batch: int) -> set[str]:
    """The names of the tensors that each slice has for itself, or that are known before the run.

    Weights that a layer dequantizes are neither: they are not cut, and a layer that reads them has them in its group.
    """
    of_image, with_batch = _specs_of_slice(network, specs, batch, 1)
    return {name for name, spec in of_image.items() if name in with_batch or spec.value is not None}


def _specs_of_slice(
    network: Network, specs: Mapping[str, TensorSpec], batch: int, images: int
) -> tuple[dict[str, TensorSpec], set[str]]:
    """The specs for so many images, and the names of those that have the images as their first axis.

    Those are the inputs and what follows from them while images do not meet. The others are constants, and what is
    computed from constants alone.
    """
    found = {
        tensor.name: TensorSpec((images, *specs[tensor.name].shape[1:]), tensor.dtype) for tensor in network.inputs
    }
    with_batch = set(found)
    for layer in network.layers:
        read = {tensor.name for tensor in layer.ordering_inputs if tensor is not None}
        if not read <= found.keys():
            continue
        try:
            given = infer_with_values(
                layer, [None if tensor is None else found[tensor.name] for tensor in layer.ordering_inputs]
            )
        except DryfitError:  # such as a reshape to known extents
            continue
        made = {tensor.name: spec for tensor, spec in zip(layer.outputs, given, strict=True)}
        if not read & with_batch:
            is_repeatable = layer.kind in _BY_IMAGE  # random numbers are not
            found.update((name, spec) for name, spec in made.items() if is_repeatable or spec.value is not None)
            continue
        reads_others = any(tensor is not None and tensor.name in with_batch for tensor in layer.inputs[1:])
        if (layer.kind in _WEIGHTED and reads_others) or not _keeps_images_apart(layer, [found[one] for one in read]):
            continue
        wholes = {name: specs[name].shape for name in made}
        if all(wholes[name][:1] == (batch,) and made[name].shape == (images, *wholes[name][1:]) for name in made):
            found |= made
            with_batch |= made.keys()
    return found, with_batch


def _keeps_images_apart(layer: Layer, specs: Sequence[TensorSpec]) -> bool:
    check = _CHECKS.get(type(layer))
    return layer.kind in _BY_IMAGE if check is None else check(layer, specs)
