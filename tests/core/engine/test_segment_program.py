import gc
import os
import subprocess
import sys
import threading

import attrs
import numpy as np
import pytest
from tests.core.builder.networks import activation, convolution, image_network
from tests.core.engine import compiling_target

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.plan import PROGRAM
from dryfit.errors import EngineFileError, PluginError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.reference.executor import run_reference

OTHER_PROCESS = """
import sys
import numpy as np
from dryfit.engine.engine import Engine
folder = sys.argv[1]
outputs = Engine.load(f"{folder}/model.engine").create_execution_context(1).run({"x": np.load(f"{folder}/x.npy")})
np.save(f"{folder}/y.npy", outputs["r"])
"""


@pytest.fixture(autouse=True)
def _acme(install):
    """The compiling targets, installed."""
    install("acme_compilers", "", compiling_target.ENTRY_POINTS, "0.1")
    compiling_target.loaded.clear()


@pytest.fixture
def forget_plugins(monkeypatch):
    """A function after which this process reads entry points anew."""
    return lambda: monkeypatch.setattr(registry, "__dict__", vars(PluginRegistry()))


def small_network():
    network, x = image_network()
    network.mark_output(activation(network, convolution(network, x, "c"), "r"))
    return network


def built():
    config = BuilderConfig()
    config.default_device_type = "ACME_COMPILER"
    return Builder().build_engine(small_network(), config)


def image():
    return np.random.default_rng(0).standard_normal((1, 8, 6, 6)).astype(np.float32)


def with_program(engine, array):
    (operation,) = engine.plan.operations
    weights = {PROGRAM: array} if array is not None else {}
    return attrs.evolve(engine.plan, operations=[attrs.evolve(operation, weights=weights)])


def test_an_engine_with_a_program_runs_in_another_process(tmp_path, repository):
    built().save(tmp_path / "model.engine")
    np.save(tmp_path / "x.npy", image())
    path = os.pathsep.join(map(str, (tmp_path / "strangers", repository)))
    subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, str(tmp_path)], env={**os.environ, "PYTHONPATH": path}, check=True
    )
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), run_reference(small_network(), {"x": image()})["r"])


def test_a_program_survives_the_file_byte_by_byte():
    engine = built()
    assert Engine.load(engine.serialize()).plan.programs == engine.plan.programs


def test_a_program_is_loaded_once_for_all_contexts_and_threads():
    engine = built()
    contexts = []
    threads = [threading.Thread(target=lambda: contexts.append(engine.create_execution_context(1))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results = [context.run({"x": image()})["r"] for context in contexts]
    assert len(compiling_target.loaded) == 1
    assert len(results) == 4
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def test_an_engine_that_is_gone_leaves_no_loaded_program():
    from dryfit.engine import segment_program

    gc.collect()
    before = len(segment_program._loaded)
    engine = built()
    engine.create_execution_context(1)
    assert len(segment_program._loaded) == before + 1
    del engine
    gc.collect()
    assert len(segment_program._loaded) == before


def test_loading_an_engine_runs_no_loader():
    data = built().serialize()
    Engine.load(data).create_engine_inspector().get_engine_information()
    assert not compiling_target.loaded


def test_a_changed_byte_of_a_program_is_found_before_anything_is_loaded():
    data = bytearray(built().serialize())
    place = bytes(data).index(compiling_target.MAGIC)
    data[place] ^= 1
    with pytest.raises(EngineFileError, match=r"digest|damaged"):
        Engine.load(bytes(data))
    assert not compiling_target.loaded


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (b"", "no ACME program"),
        (b"something else", "ValueError: no ACME program: it begins with b'some'"),
        (compiling_target.MAGIC + (5).to_bytes(8, "little") + b"{{{{{", "JSONDecodeError"),
    ],
    ids=["empty", "foreign", "damaged"],
)
def test_what_the_loader_raises_names_device_and_segment(program, found):
    engine = Engine(with_program(built(), np.frombuffer(program, np.uint8)))
    with pytest.raises(EngineFileError, match="could not be loaded") as caught:
        engine.create_execution_context()
    assert caught.value.where == "segment 0 of ACME_COMPILER"
    assert found in caught.value.found


@pytest.mark.parametrize(
    "array",
    [None, np.zeros(4, np.int8), np.zeros((2, 2), np.uint8)],
    ids=["missing", "another type", "another rank"],
)
def test_a_compiled_operation_without_a_program_of_bytes_is_refused(array):
    with pytest.raises(EngineFileError, match="The program of a compiled segment must be bytes"):
        Engine(with_program(built(), array))


def test_a_missing_package_is_named_with_the_version_that_the_engine_was_built_with(monkeypatch, forget_plugins):
    data = built().serialize()
    monkeypatch.setattr(sys, "path", sys.path[1:])
    forget_plugins()
    engine = Engine.load(data)
    with pytest.raises(PluginError) as caught:
        engine.create_execution_context()
    assert caught.value.found == "ACME_COMPILER"
    assert "Install it: pip install acme-compilers (the engine was built with 0.1)" in caught.value.remedy


@pytest.mark.parametrize("package", ["evil; rm 1", "a\nb 1", "", "-r 1"])
def test_a_package_that_is_no_distribution_and_version_is_refused(package):
    plan = attrs.evolve(built().plan, packages={"target ACME_COMPILER": package})
    with pytest.raises(EngineFileError, match="named by distribution and version"):
        Engine(plan)


def test_an_installed_target_without_a_loader_is_named(monkeypatch, forget_plugins):
    engine = built()
    monkeypatch.setattr(
        compiling_target,
        "TARGET",
        compiling_target.variant("ACME_COMPILER", compile_segment_at=None, load_segment_at=None),
    )
    forget_plugins()
    with pytest.raises(PluginError, match="The installed target cannot load the engine's compiled segment") as caught:
        engine.create_execution_context()
    assert caught.value.where == "segment 0 of ACME_COMPILER"


def test_a_loader_that_gives_something_else_is_named(monkeypatch):
    engine = built()
    monkeypatch.setattr(compiling_target, "load_segment", lambda program: program)
    with pytest.raises(PluginError, match="an object with a method `bind`") as caught:
        engine.create_execution_context()
    assert caught.value.found == "bytes"


@pytest.mark.parametrize(("steps", "found"), [([], "none"), (None, "none"), ([1, "x"], "int, str")])
def test_a_loaded_segment_that_gives_no_steps_is_named(monkeypatch, steps, found):
    monkeypatch.setattr(compiling_target.Loaded, "bind", lambda self, binding: steps)
    with pytest.raises(
        PluginError,
        match="A loaded segment's `bind` must return steps, or functions without arguments, that compute the outputs",
    ) as caught:
        built().create_execution_context(1).run({"x": image()})
    assert (caught.value.where, caught.value.found) == ("engine layer '{ForeignNode[c...r]}'", found)


@pytest.mark.parametrize("shape", [(1, 8, 6, 60), (1, 8, 5, 6), (2, 8, 6, 6)])
def test_a_program_that_was_made_for_other_shapes_is_refused(shape):
    network = Network("larger")
    x = network.add_input("x", DataType.FLOAT, shape)
    network.mark_output(activation(network, convolution(network, x, "c"), "r"))
    config = BuilderConfig()
    config.default_device_type = "ACME_COMPILER"
    other = Builder().build_engine(network, config)
    plan = with_program(built(), other.plan.operations[0].weights[PROGRAM])
    context = Engine.load(Engine(plan).serialize()).create_execution_context(1)
    with pytest.raises(EngineFileError, match="The program of a compiled segment does not match its tensors") as caught:
        context.run({"x": image()})
    assert str(shape) in caught.value.found


def test_a_program_that_stumbles_while_it_runs_names_kernel_and_layer(monkeypatch):
    monkeypatch.setattr(compiling_target.Loaded, "bind", lambda self, binding: [lambda: {}["nothing"]])
    with pytest.raises(PluginError, match="failed while it ran") as caught:
        built().create_execution_context(1).run({"x": image()})
    assert "acme_compiler.segment" in caught.value.where


def test_the_inspector_tells_the_segments_layers_inputs_and_outputs():
    lines = built().create_engine_inspector().get_engine_information("oneline")
    assert lines == (
        "[ACME_COMPILER] {ForeignNode[c...r]}: ForeignNode with CONVOLUTION, ACTIVATION in FLOAT by "
        "acme_compiler.segment: x [1, 8, 6, 6] -> r [1, 8, 6, 6]"
    )
