"""Execution contexts: they read inputs from, and write outputs to, device addresses."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import dryfit
from dryfit_tensorrt import memory
from dryfit_tensorrt.behaviour.monitoring import report, report_failure
from dryfit_tensorrt.behaviour.objects import Base, Scoped, called_back
from dryfit_tensorrt.behaviour.plugin_running import UsedBy
from dryfit_tensorrt.behaviour.values import is_narrowed, of_enum

ALIGNMENT = 256
"""Alignment that an output allocator is asked for, in bytes. Source: TensorRT's headers."""


class IExecutionContext(Base, Scoped):
    """The state to run an engine."""

    _beyond_tables = frozenset({"__enter__", "__exit__"})

    def __init__(self) -> None:
        raise TypeError("tensorrt.IExecutionContext: No constructor defined!")

    @classmethod
    def _of(cls, engine: Any, core: dryfit.ExecutionContext) -> Any:
        self = cls._blank()
        self._engine, self._core, self._logger = engine, core, engine._logger
        own = engine._core
        names = [own.get_tensor_name(index) for index in range(own.num_io_tensors)]
        self._inputs = [name for name in names if own.get_tensor_mode(name).name == "INPUT"]
        self._outputs = [name for name in names if name not in self._inputs]
        types = {name: own.get_tensor_dtype(name) for name in names}
        self._narrowed = {name for name, dtype in types.items() if is_narrowed(cls._api, dtype)}
        self._dtypes = {name: dryfit.DataType.INT32 if name in self._narrowed else types[name] for name in names}
        self._linear = {name: own.get_tensor_format(name) == "LINEAR" for name in names}
        self._on_host = {name for name in names if own.get_tensor_location(name).name == "HOST"}
        self._addresses = {}
        self._allocators = {}
        self._profiler = None
        self._emits = True
        self._times = {}
        self._listener = None
        self._recorder = None
        self._fixed = {}
        for name in self._inputs:
            if -1 not in own.get_tensor_shape(name):
                core.set_input_shape(name, own.get_tensor_shape(name))
        return self

    @property
    def engine(self) -> Any:
        """The engine."""
        return self._engine

    @property
    def name(self) -> str:
        """Name of the context."""
        return self._core.name

    @name.setter
    def name(self, name: str) -> None:
        self._core.name = name

    # Shapes -------------------------------------------------------------------------------------------------------

    def set_input_shape(self, name: str, shape: Sequence[int]) -> bool:
        """Set the shape of an input; returns whether the profile allows it."""
        self._fixed.clear()
        try:
            return self._core.set_input_shape(name, tuple(map(int, shape)))
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return False

    def get_tensor_shape(self, name: str) -> Any:
        """Return the shape of an input or output; -1 for an extent that is not known."""
        try:
            return self._api.Dims(self._shape(name))
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return self._api.Dims()

    def _shape(self, name: str) -> tuple[int, ...]:
        """The shape of an input or output for the shapes that are set, which a run asks for each time."""
        found = self._fixed.get(name)
        if found is None:
            found = self._fixed[name] = self._core.get_tensor_shape(name)
        return found

    def get_tensor_strides(self, name: str) -> Any:
        """Return the strides of an input or output."""
        try:
            return self._api.Dims(self._core.get_tensor_strides(name))
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return self._api.Dims()

    def infer_shapes(self) -> list[str]:
        """Return the inputs whose shape is missing.

        Raises:
            RuntimeError: The shapes that are set contradict each other.
        """
        try:
            missing = self._core.infer_shapes()
            if not missing:
                for name in self._outputs:
                    self._core.get_tensor_shape(name)
        except dryfit.DryfitError as error:
            raise RuntimeError(str(error)) from None
        return missing

    @property
    def all_binding_shapes_specified(self) -> bool:
        """Whether the shape of every input is known."""
        return self._core.all_binding_shapes_specified

    @property
    def all_shape_inputs_specified(self) -> bool:
        """Whether every input that carries dimensions has an address."""
        return all(name in self._addresses for name in self._inputs if name in self._on_host)

    def get_max_output_size(self, name: str) -> int:
        """Return the bytes that an output needs at most for the shapes that are set; 0 where that is not known."""
        shape = self.get_tensor_shape(name)
        return 0 if -1 in shape else self._size(name, shape)

    def _size(self, name: str, shape: Sequence[int]) -> int:
        if self._linear[name]:
            return self._dtypes[name].bytes_of(math.prod(shape))
        return self._engine._core.tensor_bytes(name, tuple(shape))

    @property
    def active_optimization_profile(self) -> int:
        """Index of the profile in use."""
        return self._core.active_optimization_profile

    @active_optimization_profile.setter
    def active_optimization_profile(self, index: int) -> None:
        self.set_optimization_profile_async(index, 0)

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        """Select a profile.

        Raises:
            RuntimeError: The engine has no such profile.
        """
        del stream_handle
        try:
            self._core.set_optimization_profile(profile_index)
        except dryfit.DryfitError as error:
            raise RuntimeError(str(error)) from None
        self._fixed.clear()
        for name in self._inputs:
            shape = self._engine._core.get_tensor_shape(name)
            if -1 not in shape:
                self._core.set_input_shape(name, shape)
        return True

    # Addresses ----------------------------------------------------------------------------------------------------

    def set_tensor_address(self, name: str, memory: int) -> bool:
        """Set the address that an input is read from or an output is written to."""
        if name not in self._dtypes:
            report(self, "ERROR", f"set_tensor_address: the engine has no input or output {name!r}")
            return False
        self._addresses[name] = int(memory)
        return True

    def get_tensor_address(self, name: str) -> int:
        """Return the address of an input or output; 0 for none."""
        return self._addresses.get(name, 0)

    def set_output_allocator(self, name: str, output_allocator: Any) -> bool:
        """Set what provides the memory of an output; None removes it."""
        if name not in self._outputs:
            report(self, "ERROR", f"set_output_allocator: the engine has no output {name!r}")
            return False
        if output_allocator is None:
            self._allocators.pop(name, None)
        else:
            self._allocators[name] = output_allocator
        return True

    def get_output_allocator(self, name: str) -> Any:
        """Return what provides the memory of an output, or None."""
        return self._allocators.get(name)

    # Running ------------------------------------------------------------------------------------------------------

    def execute_async_v3(self, stream_handle: int) -> bool:
        """Run once on the addresses that are set. The outputs are there when the call returns."""
        self._stream = int(stream_handle)  # plugins get it
        return self._run(self._addresses)

    def execute_v2(self, bindings: Sequence[int]) -> bool:
        """Run once on addresses in the order of the engine's inputs and outputs."""
        names = (*self._inputs, *self._outputs)
        # In version 8 each profile has bindings of its own, and those of the others are padding.
        first = len(names) * self._core.active_optimization_profile if self._api.major == 8 else 0
        own = bindings[first : first + len(names)] if len(bindings) > len(names) else bindings
        if len(own) != len(names):
            report(self, "ERROR", f"execute_v2: {len(bindings)} addresses for {len(names)} inputs and outputs")
            return False
        return self._run(dict(zip(names, map(int, own), strict=True)))

    def execute_async_v2(self, bindings: Sequence[int], stream_handle: int, input_consumed: Any = None) -> bool:
        """Run once on addresses in the order of the engine's inputs and outputs."""
        del stream_handle, input_consumed
        return self.execute_v2(bindings)

    def _run(self, addresses: Mapping[str, int]) -> bool:
        try:
            inputs = {name: self._input(name, addresses) for name in self._inputs}
            targets = {}
            for name in self._outputs:
                if name not in self._allocators and self._linear[name] and name not in self._narrowed:
                    shape = self._shape(name)
                    if -1 not in shape:
                        targets[name] = self._array(name, addresses.get(name, 0), shape)
            with UsedBy(self):
                outputs = self._core.run(inputs, out=targets)
            for name in self._outputs:
                if name not in targets:
                    self._deliver(name, outputs[name], addresses)
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return False
        if self._profiler is not None and self._emits:
            self.report_to_profiler()
        return True

    def _array(self, name: str, address: int, shape: Sequence[int]) -> Any:
        """The values at an address as an array that shares the memory."""
        dtype = self._dtypes[name]
        size = dtype.bytes_of(math.prod(shape))
        if name in self._on_host and not memory.is_device_address(address):
            if not address:
                raise dryfit.ExecutionError("The tensor has no address", where=name, remedy="Call set_tensor_address")
            held = (ctypes.c_ubyte * size).from_address(address)
            return np.ctypeslib.as_array(held).view(dtype.numpy).reshape(shape)
        return memory.view(address, size).view(dtype.numpy).reshape(shape)

    def _input(self, name: str, addresses: Mapping[str, int]) -> Any:
        shape = self._shape(name)
        if -1 in shape:
            raise dryfit.ExecutionError(
                "The shape of the input is not set", where=f"input {name!r}", found=shape, remedy="Call set_input_shape"
            )
        if self._linear[name]:
            array = self._array(name, addresses.get(name, 0), shape)
            return array.astype(np.int64) if name in self._narrowed else array
        held = memory.view(addresses.get(name, 0), self._size(name, shape))
        return self._engine._core.unpack_tensor(name, held, shape)

    def _deliver(self, name: str, array: Any, addresses: Mapping[str, int]) -> None:
        if name in self._narrowed:
            array = array.astype(np.int32)
        contents = (
            np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            if self._linear[name]
            else self._engine._core.pack_tensor(name, array)
        )
        allocator, address = self._allocators.get(name), addresses.get(name, 0)
        if allocator is not None:
            asked = (name, address, contents.size, ALIGNMENT)
            if self._api.major >= 10 and hasattr(allocator, "reallocate_output_async"):
                address = int(called_back(allocator.reallocate_output_async, *asked, 0, otherwise=0) or 0)
            else:
                address = int(called_back(allocator.reallocate_output, *asked, otherwise=0) or 0)
            called_back(allocator.notify_shape, name, self._api.Dims(array.shape), otherwise=None)
            self._addresses[name] = address
        if contents.size:
            memory.view(address, contents.size)[:] = contents

    # Profiling and debugging --------------------------------------------------------------------------------------

    @property
    def profiler(self) -> Any:
        """The profiler, or None."""
        return self._profiler

    @profiler.setter
    def profiler(self, profiler: Any) -> None:
        self._profiler = profiler
        self._core.profiler = None if profiler is None else _Times(self)

    @property
    def enqueue_emits_profile(self) -> bool:
        """Whether a run reports to the profiler by itself."""
        return self._emits

    @enqueue_emits_profile.setter
    def enqueue_emits_profile(self, emits: bool) -> None:
        self._emits = bool(emits)

    def report_to_profiler(self) -> bool:
        """Report the times of the last run; returns whether there are any."""
        if self._profiler is None or not self._times:
            return False
        for name, milliseconds in self._times.items():
            called_back(self._profiler.report_layer_time, name, milliseconds, otherwise=None)
        self._times.clear()
        return True

    def set_debug_listener(self, listener: Any) -> bool:
        """Set what receives the debug tensors that are switched on; None for nothing."""
        self._listener = listener
        self._core.set_debug_listener(None if listener is None else _DebugTensors(self, listener))
        return True

    def get_debug_listener(self) -> Any:
        """Return what receives debug tensors, or None."""
        return self._listener

    def set_tensor_debug_state(self, name: str, flag: bool) -> bool:
        """Switch a tensor that was marked for debugging on or off; returns whether there is one of this name."""
        try:
            self._core.set_tensor_debug_state(name, bool(flag))
        except dryfit.DryfitError as error:
            report_failure(self, error)
            return False
        return True

    def get_debug_state(self, name: str) -> bool:
        """Return whether a debug tensor is switched on."""
        return self._engine._core.is_debug_tensor(name) and self._core.get_debug_state(name)

    def set_all_tensors_debug_state(self, flag: bool) -> bool:
        """Switch all tensors that were marked for debugging on or off."""
        self._core.set_all_tensors_debug_state(bool(flag))
        return True

    @property
    def unfused_tensors_debug_state(self) -> bool:
        """Whether the tensors that no fusion removed are given to the listener."""
        return self._core.unfused_tensors_debug_state

    @unfused_tensors_debug_state.setter
    def unfused_tensors_debug_state(self, flag: bool) -> None:
        try:
            self._core.unfused_tensors_debug_state = bool(flag)
        except dryfit.DryfitError as error:
            report_failure(self, error)

    @property
    def error_recorder(self) -> Any:
        """The recorder of errors, or None."""
        return self._recorder

    @error_recorder.setter
    def error_recorder(self, recorder: Any) -> None:
        self._recorder = recorder

    # The binding interface of version 8 ---------------------------------------------------------------------------

    def execute(self, batch_size: int = 1, bindings: Sequence[int] = ()) -> bool:
        """Run once; the batch is explicit, so that a batch size other than 1 has no meaning."""
        if batch_size != 1:
            report(self, "ERROR", f"execute: the batch is explicit, so batch_size must be 1 (found {batch_size})")
            return False
        return self.execute_v2(bindings)

    def execute_async(
        self, batch_size: int = 1, bindings: Sequence[int] = (), stream_handle: int = 0, input_consumed: Any = None
    ) -> bool:
        """Run once; see `execute`."""
        del stream_handle, input_consumed
        return self.execute(batch_size, bindings)

    def set_binding_shape(self, binding: int, shape: Sequence[int]) -> bool:
        """Set the shape of an input."""
        return self.set_input_shape(self._engine._binding(binding), shape)

    def get_binding_shape(self, binding: int) -> Any:
        """Return the shape of an input or output."""
        return self.get_tensor_shape(self._engine._binding(binding))

    def get_strides(self, binding: int) -> Any:
        """Return the strides of an input or output."""
        return self.get_tensor_strides(self._engine._binding(binding))

    def set_shape_input(self, binding: int, shape: Sequence[int]) -> bool:
        """Set the values of an input that carries dimensions."""
        name = self._engine._binding(binding)
        held = np.ascontiguousarray(shape, self._dtypes[name].numpy)
        self._shape_values = {**getattr(self, "_shape_values", {}), name: held}
        return self.set_tensor_address(name, held.ctypes.data)

    def get_shape(self, binding: int) -> list[int]:
        """Return the values of an input that carries dimensions."""
        name = self._engine._binding(binding)
        return [int(one) for one in getattr(self, "_shape_values", {}).get(name, ())]


class _Times(dryfit.Profiler):
    """Collects the times of a run, those of a DLA loadable as one, and reports them."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Take the time of an engine layer."""
        context = self._context
        shown = context._engine._shown_names().get(layer_name, layer_name)
        context._times[shown] = context._times.get(shown, 0.0) + ms


class _DebugTensors:
    """Hands debug tensors to a program's listener, in device memory that lives as long as the call."""

    def __init__(self, context: Any, listener: Any) -> None:
        self._context, self._listener = context, listener

    def process_debug_tensor(self, name: str, array: Any, dtype: Any, shape: Any) -> bool:
        """Hand on a tensor; False from the listener or an exception in it fails the run, None does not.

        Polygraphy's listener returns nothing.
        """
        api = self._context._api
        values = np.ascontiguousarray(array)
        address = memory.allocate(values.nbytes)
        memory.view(address, values.nbytes)[:] = values.reshape(-1).view(np.uint8)
        try:
            answer = called_back(
                self._listener.process_debug_tensor,
                *(address, api.TensorLocation.DEVICE, of_enum(api, "DataType", dtype), api.Dims(shape), name, 0),
                otherwise=False,
            )
            return answer is None or bool(answer)
        finally:
            memory.free(address)
