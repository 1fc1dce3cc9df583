"""What the runtime computes is what the engine computes, in every format and whatever lies beside the values."""

import numpy as np
import pytest
from tests.core.builder.networks import dla_config
from tests.targets.dla.runtime.loadables import (
    SHAPE,
    affine,
    convolutions,
    memory_of,
    numbers,
    quantized,
    result_of,
    task_of,
    two_by_two,
)

from dryfit import network_from_onnx
from dryfit.building import Builder
from dryfit_dla.runtime import Board, Task, read_loadable


@pytest.mark.parametrize(("read", "written"), [("CHW16", "CHW16"), ("DLA_HWC4", "CHW16"), ("DLA_LINEAR", "DLA_LINEAR")])
def test_a_task_gives_the_bits_of_the_engine_in_every_format(read, written):
    engine, loadable = convolutions(read, written)
    x = np.random.default_rng(2).standard_normal((1, 3, 5, 7)).astype(np.float16)
    (expected,) = engine.create_execution_context(1).run({"x": x}).values()
    with Board() as board:
        task = task_of(board.device(1).load(loadable), x)
        board.device(1).submit(task).wait()
        assert task.module.input_attributes[0].format == read
        assert task.module.output_attributes[0].format == written
        np.testing.assert_array_equal(result_of(task).view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize(("channels", "read"), [(3, "DLA_HWC4"), (40, "CHW32")])
def test_codes_of_int8_are_those_of_the_engine(channels, read):
    engine, loadable = quantized(channels)
    x = np.random.default_rng(4).uniform(-20, 20, (1, channels, 5, 7)).astype(np.float32)
    (expected,) = engine.create_execution_context(1).run({"x": x}).values()
    with Board() as board:
        module = board.device().load(loadable)
        (source,), (result,) = module.input_attributes, module.output_attributes
        assert (source.format, result.format) == (read, "CHW32")
        task = task_of(module, np.clip(np.rint(x / np.float32(source.scale)), -128, 127).astype(np.int8))
        board.device().submit(task).wait()
        codes = result_of(task)
    assert len(np.unique(codes)) > 20
    np.testing.assert_array_equal(codes * np.float32(result.scale), expected)


def test_a_real_network_gives_the_bits_of_its_engine_on_every_core(shared_models):
    path, asked = shared_models / "mnist_denoise_deconv_in_fp32.onnx", dla_config()
    loadable = read_loadable(Builder().build_loadables(image_network(path), asked).files[0])
    network = image_network(path)
    for tensor in list(network.outputs):
        network.unmark_output(tensor)
    for tensor in loadable.outputs:
        network.mark_output(network.tensor(loadable.origins[tensor.name]))
    x = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(np.float32)
    (source,) = network.inputs
    expected = Builder().build_engine(network, asked).create_execution_context().run({source.name: x})
    with Board() as board:
        for device in board.devices:
            module = device.load(loadable)
            outputs = [memory_of(tensor, device=device) for tensor in module.output_attributes]
            inputs = [memory_of(module.input_attributes[0], x.astype(np.float16), device=device)]
            device.submit(Task(module, inputs, outputs)).wait()
            assert len(outputs) == 3
            for tensor, memory in zip(module.output_attributes, outputs, strict=True):
                np.testing.assert_array_equal(tensor.read(memory.data), expected[loadable.origins[tensor.name]])


def image_network(path):
    network = network_from_onnx(path)
    network.inputs[0].shape = (1, 1, 28, 28)
    return network


def test_padding_of_an_input_is_not_read_and_that_of_an_output_is_zero():
    (expected,) = convolutions()[0].create_execution_context(1).run({"x": numbers(1, (1, 3, 5, 7))}).values()
    with Board() as board:
        device = board.device()
        module = device.load(convolutions()[1])
        (source,), (result,) = module.input_attributes, module.output_attributes
        memory = memory_of(source, numbers(1, source.shape))
        source.memory(memory)[..., 3:] = np.nan
        written = np.full(result.size_bytes + 8, 0xA5, np.uint8)
        device.submit(Task(module, [device.register(memory)], [device.register(written)])).wait()
    np.testing.assert_array_equal(result.read(written), expected)
    assert not result.memory(written)[..., 5:].any()
    assert (written[result.size_bytes :] == 0xA5).all(), "bytes behind the tensor are the program's"


def test_a_buffer_stands_where_the_device_expects_each_element():
    with Board() as board:
        device = board.device()
        module = device.load(affine(layout="DLA_LINEAR"))
        (source,) = module.input_attributes
        raw = np.zeros(source.size_bytes, np.uint8)
        for place in np.ndindex(SHAPE):
            at = int(np.dot(place, source.strides_bytes))
            raw[at : at + 2].view(np.float16)[0] = numbers()[place]
        result = bytearray(source.size_bytes)
        device.submit(Task(module, [device.register(raw)], [device.register(result)])).wait()
    for place in np.ndindex(SHAPE):
        at = int(np.dot(place, source.strides_bytes))
        assert np.frombuffer(result, np.float16, 1, at)[0] == numbers()[place] * 2 + 1


def test_memories_go_to_tensors_in_order_or_by_name():
    a, b = numbers(1), numbers(2)
    with Board() as board:
        device = board.device()
        module = device.load(two_by_two())
        names = [tensor.name for tensor in (*module.input_attributes, *module.output_attributes)]
        assert names == ["a", "b", "sum", "positive"]
        tensor = module.input_attributes[0]
        first, second = memory_of(tensor, a, device=device), memory_of(tensor, b, device=device)
        outputs = [memory_of(tensor, device=device) for _ in range(4)]
        in_order = Task(module, [first, second], outputs[:2])
        by_name = Task(module, {"b": second, "a": first}, {"positive": outputs[3], "sum": outputs[2]})
        device.submit([in_order, by_name]).wait()
        found = [tensor.read(memory.data) for memory in outputs]
    for index, expected in enumerate([a + b, np.maximum(a + b, 0)] * 2):
        np.testing.assert_array_equal(found[index], expected)


def test_a_loadable_is_loaded_from_bytes_a_path_or_what_was_read(tmp_path):
    path = tmp_path / "affine.loadable"
    path.write_bytes(affine())
    with Board() as board:
        device = board.device()
        tasks = [task_of(device.load(source)) for source in (affine(), path, str(path), read_loadable(path))]
        device.submit(tasks).wait()
        for task in tasks:
            np.testing.assert_array_equal(result_of(task), numbers() * 2 + 1)


class OnlyDlpack:
    """A foreign array that has nothing but DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("kind", [np.asarray, bytearray, memoryview, OnlyDlpack, lambda array: array.view(np.float16)])
def test_buffers_of_every_kind_are_used_where_they_are(kind):
    with Board() as board:
        device = board.device()
        module = device.load(affine())
        (source,), (result,) = module.input_attributes, module.output_attributes
        read, written = kind(memory_of(source)), kind(memory_of(result))
        if kind is OnlyDlpack:
            read, written = (OnlyDlpack(memory_of(tensor)) for tensor in (source, result))
        task = Task(module, [device.register(read)], [device.register(written)])
        if not task.outputs[0].data.flags.writeable:
            pytest.skip("this numpy gives read-only arrays by DLPack")
        source.write(task.inputs[0].data, numbers())  # after it was registered
        device.submit(task).wait()
        own = written._array if kind is OnlyDlpack else written
        np.testing.assert_array_equal(result.read(own), numbers() * 2 + 1)
