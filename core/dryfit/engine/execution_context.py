"""Execution of an engine: TensorRT's `IExecutionContext`, with numpy arrays instead of device addresses."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from dryfit.engine.batch_slices import SlicedEngine, bind_engine
from dryfit.engine.binding import BoundEngine, Observe, specs_for
from dryfit.engine.buffers import size_of
from dryfit.engine.debug_tensors import DebugFunction, DebugListener, DebugStates
from dryfit.engine.device_tensors import device_strides
from dryfit.engine.input_arrays import (
    as_input,
    as_output,
    check_dimension_names,
    check_shape,
    check_values,
    name_inputs,
)
from dryfit.engine.output_allocators import OutputAllocator, allocated, largest_size
from dryfit.engine.plan import Plan
from dryfit.engine.profiler import LayerSpans, Profiler, watched_run
from dryfit.engine.repeated_run import RepeatedRun
from dryfit.engine.resolved_operation import resolve_operations
from dryfit.errors import ExecutionError, UnknownNameError
from dryfit.forking import is_lost, watch_forks
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.tensor import Shape, TensorSpec
from dryfit.plugins import facade
from dryfit.target.kernels import Array
from dryfit.target.machine_code import usable_processors

if TYPE_CHECKING:
    from dryfit.engine.engine import Engine

KEPT_BINDINGS = 4
"""Sets of input shapes whose memory is kept, the last used first. Our choice: a network meets few shapes at a time."""

_UNWATCHED = nullcontext()


class ExecutionContext(KnownAttributes):
    """The state to run an engine: input shapes, memory, threads. Create it with `Engine.create_execution_context`.

    Contexts of one engine share its weights and can run concurrently, each in its own thread. Results are bit-identical
    for all contexts and any number of threads. A context runs one request at a time: a second caller waits. A run that
    starts after a refit uses only new weights, a run that started before it only old ones. After a fork, the child
    process has its own contexts, which can run whatever the threads of the parent were doing.

    Attributes:
        engine: engine of the context.
        name: name chosen by the user.
        num_threads: number of threads.
        profiler: profiler that receives the host latency of each engine layer after each run, or None.

    Example:
        >>> outputs = context.run({"x": np.zeros((1, 3, 8, 8), np.float32)})
        >>> outputs["y"].shape
        (1, 8, 8, 8)
    """

    engine: Engine
    name: str
    num_threads: int
    profiler: Profiler | None

    def __init__(self, engine: Engine, num_threads: int | None = None) -> None:
        threads = usable_processors() if num_threads is None else num_threads
        if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
            raise ExecutionError(
                "An engine must run with at least one thread",
                where="num_threads",
                found=num_threads,
                remedy="Set it to 1 or more",
            )
        self.engine = engine
        self.name = ""
        self.num_threads = threads
        self.profiler = None
        self._bindings: OrderedDict[tuple[bool, tuple[Shape, ...]], BoundEngine | SlicedEngine] = OrderedDict()
        self._inferred: tuple[object, Mapping[str, TensorSpec]] | None = None
        self._take_plan(engine.plan)
        self._inputs = {tensor.name: tensor.spec for tensor in engine.plan.network.inputs}
        self._input_types = [(name, spec.dtype) for name, spec in self._inputs.items()]
        self._outputs = {tensor.name: tensor.spec for tensor in engine.plan.outputs}
        self._dimension_names = {tensor.name: tensor.dimension_names for tensor in engine.plan.network.inputs}
        self._profile = 0
        self._checked: tuple[int, Mapping[str, Shape]] | None = None
        self._repeated: RepeatedRun | None = None
        self._shapes: dict[str, Shape] = {}
        self._tensors: dict[str, Array] = {}
        self._allocators: dict[str, OutputAllocator] = {}
        self._debug = DebugStates()
        self._observer = facade.run_observers(engine.name, sorted({one.device for one in engine.plan.segments}))
        self._lock = threading.RLock()
        watch_forks(self)

    def after_fork_in_child(self) -> None:
        """Reset the context in the child of a fork, where another thread may have been running it."""
        if is_lost(self._lock):
            self._lock = threading.RLock()
            self._bindings.clear()
            self._checked = self._inferred = self._repeated = None

    # Running ------------------------------------------------------------------------------------------------------

    def run(self, *inputs: Any, out: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """Run the engine once.

        Args:
            inputs: a mapping from input name to array, or one array per input in engine order. An array is a numpy
                array with any strides, or any object with `__array_interface__` or DLPack in CPU memory. Types must
                match exactly: nothing is converted.
            out: arrays that receive the outputs, by name; other outputs get new arrays.

        Returns:
            Arrays by output name.

        Raises:
            ExecutionError: A name is unknown or missing, an array has the wrong type or a shape that the engine was not
                built for, dimensions with the same name differ, the values of an input that carries dimensions are
                outside the optimization profile, an output does not fit its array, an assertion of the network does
                not hold, or a debug listener stops the run.
        """
        repeated = self._repeated
        if repeated is not None and self.profiler is None and not out and len(inputs) == 1 and repeated.fits(inputs[0]):
            with self._lock:
                if repeated is self._repeated and repeated.plan is self.engine.plan and not self._debug.is_active():
                    return repeated.run(inputs[0])
        # A small network runs for some ten microseconds, so that each lookup that is not needed counts.
        if len(inputs) == 1 and type(inputs[0]) is dict and inputs[0].keys() == self._inputs.keys():
            named: Mapping[str, Any] = inputs[0]
        else:
            named = name_inputs(inputs, self._inputs, self._where)
        arrays = {name: as_input(name, named[name], dtype) for name, dtype in self._input_types}
        shapes = {name: array.shape for name, array in arrays.items()}
        if self._checked != (self._profile, shapes):
            self._check_shapes(shapes)
        if self._plan.profiles:
            for name, (minimum, _, maximum) in self._plan.profiles[self._profile].values.items():
                check_values(name, arrays[name], minimum, maximum)
        targets = {name: as_output(name, array, self._output(name).dtype) for name, array in out.items()} if out else {}
        observer, times = self._observer, dict[str, float]()
        if observer is None and self.profiler is None:
            with self._lock:
                outputs = self._deliver(self._found(arrays, shapes, None), targets)
                self._repeated = self._repetition(shapes)
                return outputs
        with self._lock, _UNWATCHED if observer is None else watched_run(observer, shapes, times):
            outputs = self._deliver(self._found(arrays, shapes, self._timing(times)), targets)
        if self.profiler is not None:
            for name, seconds in times.items():
                self.profiler.report_layer_time(name, seconds * 1e3)
        return outputs

    def set_tensor(self, name: str, array: Any) -> None:
        """Set the array that `execute` reads an input from or writes an output to; TensorRT's `set_tensor_address`.

        The array is read when `execute` runs, not by this call. For an input, this also sets the shape.

        Raises:
            ExecutionError: The array does not fit the tensor.
            UnknownNameError: The engine has no such input or output.
        """
        if name in self._inputs:
            tensor = as_input(name, array, self._inputs[name].dtype)
            self.set_input_shape(name, tensor.shape)
        else:
            tensor = as_output(name, array, self._output(name).dtype)
        self._tensors[name] = tensor

    def get_tensor(self, name: str) -> Array | None:
        """Return the array of an input or output; None if it has none yet."""
        self._known(name)
        return self._tensors.get(name)

    def execute(self) -> dict[str, Array]:
        """Run the engine once on the arrays of `set_tensor`. Outputs without an array get new ones.

        Raises:
            ExecutionError: An input has no array, its shape was changed after the array was set, or an output does not
                fit its array.
        """
        inputs = {name: self._tensors[name] for name in self._inputs if name in self._tensors}
        for name, array in inputs.items():
            if self._shapes[name] != array.shape:
                raise ExecutionError(
                    "The array must have the shape that was set for the input",
                    where=f"input {name!r}",
                    found=array.shape,
                    allowed=self._shapes[name],
                    remedy="Pass an array of this shape, or call set_input_shape first",
                )
        return self.run(inputs, out=self._given_outputs())

    # Shapes -------------------------------------------------------------------------------------------------------

    def set_input_shape(self, name: str, shape: Sequence[int]) -> bool:
        """Set the shape of an input, so that `get_tensor_shape` returns the shapes of the outputs. Returns True.

        Raises:
            ExecutionError: The engine was not built for this shape.
            UnknownNameError: The engine has no such input.
        """
        if name not in self._inputs:
            raise UnknownNameError("input", name, self._inputs, where=self._where)
        asked = tuple(int(extent) for extent in shape)
        self._check_shape(name, asked)
        self._shapes[name] = asked
        return True

    def get_tensor_shape(self, name: str) -> Shape:
        """Return the known shape of an input or output: -1 for an extent that depends on shapes not set, or on data.

        Raises:
            UnknownNameError: The engine has no such input or output.
        """
        return self._spec(name).shape

    def tensor_spec(self, name: str) -> TensorSpec:
        """Return the shape and type of any tensor of the engine's network, for the shapes that are set.

        Raises:
            UnknownNameError: The tensor does not exist.
        """
        declared = self._plan.network.tensor(name).spec
        if name in self._inputs:
            return TensorSpec(self._shapes.get(name, declared.shape), declared.dtype)
        return declared if self.infer_shapes() else self._specs()[name]

    def infer_shapes(self) -> list[str]:
        """Return the inputs whose shape is not set; if the list is empty, all shapes that can be inferred are known."""
        return [name for name, spec in self._inputs.items() if name not in self._shapes and not spec.is_static]

    @property
    def all_binding_shapes_specified(self) -> bool:
        """Whether the shape of every input is set."""
        return not self.infer_shapes()

    def get_strides(self, name: str) -> tuple[int, ...]:
        """Return the strides of an input or output in its device's memory; TensorRT's `get_tensor_strides`.

        Strides are in elements, or in vectors for vectorized formats. They do not apply to the arrays that `run`
        accepts and returns.

        Raises:
            ExecutionError: The shape is not known yet.
            UnknownNameError: The engine has no such input or output.
        """
        spec = self._spec(name)
        if not spec.is_static:
            raise ExecutionError(
                "The strides are unknown until the shape is known",
                where=f"tensor {name!r}",
                found=spec.shape,
                remedy=f"Call set_input_shape for {', '.join(map(repr, self.infer_shapes())) or 'every input'} first",
            )
        return tuple(device_strides(self._plan, name, spec.shape, spec.dtype))

    get_tensor_strides = get_strides

    # Outputs ------------------------------------------------------------------------------------------------------

    def get_max_output_size(self, name: str) -> int:
        """Return an upper bound of an output's bytes for the shapes that are set; TensorRT's `get_max_output_size`.

        -1 if an input shape is not set, or if the size depends on data without a bound. Such extents are those of
        `NonZero` and of non-maximum suppression at their largest.

        Raises:
            UnknownNameError: The engine has no such output.
        """
        self._output(name)
        if self.infer_shapes():
            return -1
        spec = self.tensor_spec(name)
        return size_of(spec) if spec.is_static else largest_size(self._plan.network, self._shapes, name)

    def set_output_allocator(self, name: str, allocator: OutputAllocator | None) -> None:
        """Set what provides the memory of an output, in each run; TensorRT's `set_output_allocator`. None removes it.

        The allocator is called as `allocator(name, size, alignment)` once the shape is known, and returns a writable
        array of at least `size` bytes. If it has a method `notify_shape(name, shape)`, that is called after the output
        is written. An array passed as `out` to `run` takes precedence; one of `set_tensor` does not.

        Raises:
            UnknownNameError: The engine has no such output.
        """
        self._output(name)
        self._repeated = None
        if allocator is None:
            self._allocators.pop(name, None)
        else:
            self._allocators[name] = allocator

    def get_output_allocator(self, name: str) -> OutputAllocator | None:
        """Return the allocator of an output; None without one."""
        self._output(name)
        return self._allocators.get(name)

    # Debug tensors ------------------------------------------------------------------------------------------------

    def set_debug_listener(self, listener: DebugListener | DebugFunction | None) -> None:
        """Set what receives debug tensors; TensorRT's `set_debug_listener`. None removes it.

        The listener is an object with `process_debug_tensor(name, array, dtype, shape)`, or a function with these
        arguments. It is called in the thread of the run, in execution order, as soon as a tensor is computed: for the
        tensors that were marked with `Network.mark_debug` and whose state is on, and with
        `unfused_tensors_debug_state` for all tensors that the engine stores. If it returns False, the run fails.
        While a state is on, operations run one by one, with the same results.
        """
        self._debug.listener = listener

    def get_debug_listener(self) -> DebugListener | DebugFunction | None:
        """Return what receives debug tensors, or None."""
        return self._debug.listener

    def set_tensor_debug_state(self, name: str, is_on: bool) -> None:
        """Set whether the listener receives a debug tensor; TensorRT's `set_tensor_debug_state`. Off at first.

        Raises:
            UnknownNameError: The tensor is not marked as a debug tensor.
        """
        self._debug.set(self._plan, name, is_on=bool(is_on))

    def get_debug_state(self, name: str) -> bool:
        """Return whether the listener receives a debug tensor.

        Raises:
            UnknownNameError: The tensor is not marked as a debug tensor.
        """
        return self._debug.get(self._plan, name)

    def set_all_tensors_debug_state(self, is_on: bool) -> None:
        """Set the state of all tensors that were marked with `Network.mark_debug`."""
        for name in self._plan.debug_tensors:
            self._debug.set(self._plan, name, is_on=bool(is_on))

    @property
    def unfused_tensors_debug_state(self) -> bool:
        """Whether the listener receives every tensor that the engine stores, in addition to the marked ones.

        Raises:
            ExecutionError: On setting, the network was not marked with `mark_unfused_tensors_as_debug_tensors`.
        """
        return self._debug.shows_unfused

    @unfused_tensors_debug_state.setter
    def unfused_tensors_debug_state(self, is_on: bool) -> None:
        self._debug.set_unfused(self._plan, is_on=bool(is_on))

    # Profiles -----------------------------------------------------------------------------------------------------

    @property
    def active_optimization_profile(self) -> int:
        """Index of the optimization profile in use."""
        return self._profile

    def set_optimization_profile(self, index: int) -> None:
        """Select an optimization profile. Shapes that were set are discarded.

        Raises:
            ExecutionError: The engine has no such profile.
        """
        count = self.engine.num_optimization_profiles
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise ExecutionError(
                "The optimization profile index is out of range",
                where=self._where,
                found=index,
                allowed=f"0 to {count - 1}",
                remedy="Use an index below the engine's num_optimization_profiles",
            )
        self._profile, self._repeated = index, None
        self._shapes.clear()

    # Inside -------------------------------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return f"engine {self.engine.name!r}"

    def _timing(self, times: dict[str, float]) -> Observe | None:
        """Return an accumulator of seconds by engine layer, since kernels may report repeatedly; None if not needed."""
        if self.profiler is None and not (self._observer is not None and self._observer.wants_layer_times):
            return None

        def observe(name: str, seconds: float) -> None:
            layer = self._operation_names.get(name, name)
            times[layer] = times.get(layer, 0.0) + seconds
            if spans is not None:
                spans.report_layer_span(layer, seconds)

        spans = self.profiler if isinstance(self.profiler, LayerSpans) else None
        return observe

    def _known(self, name: str) -> None:
        if name not in self._inputs and name not in self._outputs:
            raise UnknownNameError("input or output", name, [*self._inputs, *self._outputs], where=self._where)

    def _output(self, name: str) -> TensorSpec:
        if name not in self._outputs:
            raise UnknownNameError("output", name, self._outputs, where=self._where)
        return self._outputs[name]

    def _spec(self, name: str) -> TensorSpec:
        self._known(name)
        return self.tensor_spec(name)

    def _specs(self) -> Mapping[str, TensorSpec]:
        """Return the specs of all tensors for the shapes that are set, cached until these change."""
        key = tuple(sorted(self._shapes.items()))
        if self._inferred is None or self._inferred[0] != key:
            check_dimension_names(self._shapes, self._dimension_names)
            self._inferred = (key, specs_for(self._plan, self._shapes))
        return self._inferred[1]

    def _check_shape(self, name: str, shape: Shape) -> None:
        profile = self._plan.profiles[self._profile].shapes if self._plan.profiles else {}
        minimum, _, maximum = profile.get(name, (None, None, None))
        check_shape(name, shape, self._inputs[name].shape, minimum, maximum)

    def _check_shapes(self, shapes: Mapping[str, Shape]) -> None:
        """Reject shapes that a run cannot have. Valid ones are cached with the profile for the next run."""
        profile = self._profile
        for name, shape in shapes.items():
            self._check_shape(name, shape)
        check_dimension_names(shapes, self._dimension_names)
        self._checked = (profile, shapes)

    def _take_plan(self, plan: Plan) -> None:
        """Reset the context for a plan of the engine: the first one, or a replacement by a refit.

        Raises:
            ExecutionError: The plan is stripped.
        """
        if plan.is_stripped:
            raise ExecutionError(
                "The engine has no weights (stripped) and must be refitted before it runs",
                where=f"engine {plan.network.name!r}",
                remedy="Restore its weights: `dryfit refit ENGINE --onnx MODEL -o OUT`, or with OnnxParserRefitter",
            )
        self._operations = resolve_operations(plan)
        self._operation_names = {one.group.name: one.operation.name for one in self._operations}
        self._bindings.clear()
        self._inferred = None
        self._plan = plan

    def _found(
        self, arrays: Mapping[str, Array], shapes: Mapping[str, Shape], observe: Observe | None
    ) -> Mapping[str, Array]:
        """Run the engine, and return the arrays of all outputs, which belong to the binding.

        Raises:
            ExecutionError: An assertion does not hold, or a debug listener stops the run.
        """
        if self._debug.is_active():
            bound = self._binding(shapes, shows_tensors=True)
            found = bound.run(arrays, observe, lambda name, array: self._debug.show(self._plan, name, array))
        else:
            found = self._binding(shapes).run(arrays, observe)
        for assertion in self._plan.assertions:
            name = assertion.condition
            assertion.check(found[name] if name in found else arrays[name])
        return found

    def _repetition(self, shapes: Mapping[str, Shape]) -> RepeatedRun | None:
        """Return a run with inputs of the same shapes; None where it depends on more than them."""
        plan = self._plan
        has_values = any(profile.values for profile in plan.profiles)
        if has_values or plan.assertions or self._allocators or self._debug.is_active():
            return None
        inputs = [(name, dtype.numpy, shapes[name]) for name, dtype in self._input_types]
        return RepeatedRun(plan, self._binding(shapes), inputs, list(self._outputs))

    def _given_outputs(self) -> dict[str, Array]:
        """The arrays of `set_tensor` for outputs; those with an allocator get new memory in each run."""
        names = self._outputs.keys() & self._tensors.keys() - self._allocators.keys()
        return {name: self._tensors[name] for name in self._outputs if name in names}

    def _deliver(self, found: Mapping[str, Array], targets: Mapping[str, Array]) -> dict[str, Array]:
        """Return copies of the outputs, in the given arrays, in memory of their allocators or in new arrays."""
        for name, target in targets.items():
            if target.shape != found[name].shape:
                raise ExecutionError(
                    "The output must fit the array that was given for it",
                    where=f"output {name!r}",
                    found=target.shape,
                    allowed=found[name].shape,
                    remedy="Allocate an array of the allowed shape",
                )
        outputs = {}
        if not targets and not self._allocators:
            return {name: found[name].copy("C") for name in self._outputs}
        for name, spec in self._outputs.items():
            array = found[name]
            if name in targets:
                outputs[name] = targets[name]
            elif name in self._allocators:
                outputs[name] = allocated(self._allocators[name], name, TensorSpec(array.shape, spec.dtype))
            else:
                outputs[name] = np.empty(array.shape, array.dtype)
            np.copyto(outputs[name], array)
        for name, allocator in self._allocators.items():
            if name not in targets and hasattr(allocator, "notify_shape"):
                allocator.notify_shape(name, outputs[name].shape)
        return outputs

    def _binding(self, shapes: Mapping[str, Shape], *, shows_tensors: bool = False) -> BoundEngine | SlicedEngine:
        """Return the engine bound to these shapes: a cached one, or a new one that replaces the least recently used."""
        if (plan := self.engine.plan) is not self._plan:
            self._take_plan(plan)
        key = (shows_tensors, tuple(shapes.values()))
        if key not in self._bindings:
            while len(self._bindings) >= KEPT_BINDINGS:
                self._bindings.popitem(last=False)
            self._bindings[key] = bind_engine(
                self._plan, self._operations, shapes, self.num_threads, shows_tensors=shows_tensors
            )
        if len(self._bindings) > 1:
            self._bindings.move_to_end(key)
        return self._bindings[key]
