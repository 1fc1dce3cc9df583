"""What `dryfit migrate` finds in scripts of each kind, and that it knows everything that versions removed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dryfit.errors import ConfigError, UnknownNameError
from dryfit_tensorrt import commands
from dryfit_tensorrt.migrate import _CALLBACKS, _known, migrate
from dryfit_tensorrt.surface.changes import BEHAVIOR, DEPRECATED, REMOVED, SIGNATURES
from dryfit_tensorrt.surface.class_parents import PARENTS
from dryfit_tensorrt.surface.tables import classes, enumerations

START = """
import tensorrt as trt
logger = trt.Logger(trt.Logger.WARNING)
builder = trt.Builder(logger)
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
config = builder.create_builder_config()
"""


@pytest.fixture
def found_in(tmp_path):
    """A function that returns the findings of a script as (line, kind, name); lines count from the end of START."""

    def found(code, older="8.6", newer="11.1", start=START):
        script = tmp_path / "script.py"
        script.write_text(start + code, encoding="utf-8")
        answer = migrate(script, older, newer)
        skipped = start.count("\n")
        return [(one.line - skipped, one.kind, one.name) for one in answer.findings if one.line > skipped]

    return found


@pytest.mark.parametrize(
    ("code", "older", "newer", "expected"),
    [
        ("config.max_workspace_size = 1 << 30", "8.6", "10.16", ("removed", "IBuilderConfig.max_workspace_size")),
        ("config.max_workspace_size = 1 << 30", "10.16", "11.1", None),
        ("engine = builder.build_engine(network, config)", "8.6", "10.16", ("removed", "Builder.build_engine")),
        ("config.set_flag(trt.BuilderFlag.FP16)", "8.6", "11.1", ("removed", "BuilderFlag.FP16")),
        ("config.set_flag(trt.BuilderFlag.FP16)", "8.6", "10.16", ("deprecated", "BuilderFlag.FP16")),
        ("config.set_flag(trt.BuilderFlag.GPU_FALLBACK)", "8.6", "11.1", None),
        ("class C(trt.IInt8EntropyCalibrator2): pass", "10.16", "11.1", ("removed", "IInt8EntropyCalibrator2")),
        ("class C(trt.IInt8EntropyCalibrator2): pass", "8.6", "10", ("deprecated", "IInt8EntropyCalibrator2")),
        ("from tensorrt import IInt8MinMaxCalibrator", "8.6", "11", ("removed", "IInt8MinMaxCalibrator")),
        ("parser = trt.UffParser()", "8.6", "10", ("removed", "UffParser")),
        ("x = trt.RNNOperation.LSTM", "8.6", "10", ("removed", "RNNOperation")),
        ("config.builder_optimization_level = 3", "8.6", "11.1", None),
        ("shape = network.add_shape(network.get_input(0))", "8.6", "10", ("changed", "INetworkDefinition.add_shape")),
        ("q = network.add_quantize(t, s)", "10.16", "11.1", ("changed", "INetworkDefinition.add_quantize")),
        ("q = network.add_quantize(t, s)", "8.6", "10.16", None),
        ("q = network.add_dequantize(t, scale=s)", "10.16", "11.1", ("changed", "INetworkDefinition.add_dequantize")),
        ("q = network.add_quantize(t, s, output_type=trt.int8)", "10.16", "11.1", None),
        ("q = network.add_quantize(*arguments)", "10.16", "11.1", None),
        ("t = network.get_input(0)\nt.dtype = trt.int8", "10.16", "11.1", ("changed", "ITensor.dtype")),
        ("print(network.get_input(0).dtype)", "10.16", "11.1", None),
        ("builder.create_network(0)", "8.6", "10.16", ("changed", "Builder.create_network")),
        ("builder.create_network()", "8.6", "10.16", ("changed", "Builder.create_network")),
        ("builder.create_network(flags)", "8.6", "10.16", None),
        ("builder.create_network()", "10.16", "11.1", ("changed", "Builder.create_network")),
    ],
)
def test_a_use_is_found_where_the_version_in_between_changed_it(code, older, newer, expected, found_in):
    found = {(kind, name) for _, kind, name in found_in(code, older, newer)}
    assert found == ({expected} if expected else set())


def test_a_flag_that_every_network_has_is_deprecated(found_in):
    code = "builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))"
    expected = [(1, "deprecated", "NetworkDefinitionCreationFlag.STRONGLY_TYPED")]
    assert found_in(code, "10.16", "11.1") == expected


INTEGERS = [
    ("config.flags = 1 << 4", "8.6", "10", "bit 4 is STRICT_TYPES in 8.6 and REFIT in 10.16"),
    ("config.flags |= 1 << 5 | 1", "8.6", "10", "bit 5 is REFIT in 8.6 and DISABLE_TIMING_CACHE in 10.16"),
    ("builder.create_network(1)", "10", "11", "bit 0 is EXPLICIT_BATCH in 10.16 and STRONGLY_TYPED in 11.1"),
    ("builder.create_network(flags=2)", "8.6", "10", "bit 1 is EXPLICIT_PRECISION in 8.6 and STRONGLY_TYPED in 10.16"),
    (
        "MASK = 1 << 3\nconfig.set_tactic_sources(MASK)",
        "10",
        "11",
        "bit 3 is EDGE_MASK_CONVOLUTIONS in 10.16 and",
    ),
    ("trt.LayerType(1)", "8.6", "10", "value 1 is FULLY_CONNECTED in 8.6 and CAST in 10.16"),
]


@pytest.mark.parametrize(("code", "older", "newer", "words"), INTEGERS)
def test_integers_that_stand_for_renumbered_members_are_decoded(code, older, newer, words, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(START + code, encoding="utf-8")
    texts = [one.text for one in migrate(script, older, newer).findings]
    assert [text for text in texts if words in text], texts


@pytest.mark.parametrize(
    ("code", "older", "newer"),
    [
        ("config.flags = 1 << 3", "8.6", "11.1"),
        ("config.flags = 1 << int(trt.BuilderFlag.GPU_FALLBACK)", "8.6", "11.1"),
        ("trt.TensorFormat(5)", "8.6", "11.1"),
        ("builder.create_network(1)", "8.6", "10.16"),
        ("trt.Dims3(1)", "8.6", "11.1"),
    ],
)
def test_integers_with_one_meaning_in_both_are_left_alone(code, older, newer, found_in):
    assert not [one for one in found_in(code, older, newer) if one[2] != "Builder.create_network"]


def test_a_renumbered_mask_says_what_to_write(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(START + "config.flags = 1 << 4 | 1 << 7", encoding="utf-8")
    for newer, words in (
        ("10.16", "Use BuilderFlag.OBEY_PRECISION_CONSTRAINTS or"),
        ("11.1", "Remove it: the builder"),
    ):
        (found,) = [one for one in migrate(script, "8.6", newer).findings if one.name == "BuilderFlag"]
        assert found.instead.startswith(f"Write `1 << int(trt.BuilderFlag.TF32)`. STRICT_TYPES: {words}")
        assert found.since == "10.0"


FOLLOWED = """
class Runner:
    def __init__(self, path):
        self.runtime = trt.Runtime(trt.Logger())
        with open(path, "rb") as file:
            self.plan = self.runtime.deserialize_cuda_engine(file.read())
        self.state = self.plan.create_execution_context()

    def infer(self, buffers):
        for number in range(self.plan.num_bindings):
            pass
        self.state.execute_async_v2(buffers, 0)

def make(path):
    with trt.Runtime(logger) as runtime:
        return runtime.deserialize_cuda_engine(open(path, "rb").read())

thing = make("x")
print(len(thing), thing[0], thing.get_binding_shape(0))
for one in network:
    one.precision = trt.int8
    value = one.get_output(0)
    value.dynamic_range = (-1, 1)
a, b = trt.Runtime(logger), builder.create_optimization_profile()
kernel = network.add_convolution_nd(None, 1, (1, 1), None)
kernel.stride = (2, 2)
def typed(plan: "trt.ICudaEngine"): return plan.max_batch_size
"""


def test_objects_are_followed_through_a_script(found_in):
    assert [(line, name) for line, _, name in found_in(FOLLOWED)] == [
        (10, "ICudaEngine.num_bindings"),
        (12, "IExecutionContext.execute_async_v2"),
        (19, "ICudaEngine.__len__"),
        (19, "ICudaEngine.__getitem__"),
        (19, "ICudaEngine.get_binding_shape"),
        (21, "ILayer.precision"),
        (23, "ITensor.dynamic_range"),
        (26, "IConvolutionLayer.stride"),
        (27, "ICudaEngine.max_batch_size"),
    ]


def test_parameters_count_by_their_names_and_say_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import tensorrt as trt\n"
        "def run(trt_engine, context, other):\n"
        "    context.set_binding_shape(0, (1,))\n"
        "    other.set_binding_shape(0, (1,))\n"
        "    return trt_engine.num_bindings\n",
        encoding="utf-8",
    )
    answer = migrate(script, "8.6", "10.16")
    assert [(one.line, one.certain) for one in answer.findings] == [(3, False), (5, False)]
    assert "line 3: context.set_binding_shape: removed in TensorRT 10.0 (by the variable's name)" in str(answer)


def test_what_a_test_of_the_version_guards_is_not_counted(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        START
        + "is_old = int(trt.__version__.split('.')[0]) < 10\n"
        + "if is_old:\n    config.max_workspace_size = 1\n"
        + "if hasattr(config, 'max_workspace_size'):\n    config.max_workspace_size = 1\n"
        + "try:\n    config.max_workspace_size = 1\nexcept AttributeError:\n    pass\n"
        + "flag = getattr(trt.BuilderFlag, 'STRICT_TYPES', None)\n"
        + "other = getattr(trt.BuilderFlag, 'STRICT_TYPES')\n",
        encoding="utf-8",
    )
    answer = migrate(script, "8.6", "10.16")
    assert (answer.summary.guarded, answer.summary.removed) == (4, 1)
    guards = [one.guard for one in answer.findings if one.guard]
    assert guards[0] == "is_old"
    assert guards[2] == "except AttributeError"
    assert "Guarded by a test of the version" not in str(answer)


def test_other_libraries_are_left_alone(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nengine = 1\nengine.num_bindings\nconfig.max_workspace_size = 2\n", encoding="utf-8"
    )
    answer = migrate(script, "8.6", "11.1")
    assert not answer.uses_tensorrt
    assert not answer.findings
    assert answer.summary_line().endswith("the script does not import tensorrt")


@pytest.mark.parametrize(
    "names",
    [
        "from tensorrt import *",
        "import tensorrt",
        "import tensorrt_lean as tensorrt",
        "tensorrt = importlib.import_module('tensorrt')",
        "tensorrt = mod.lazy_import('tensorrt>=8.5')",
        "tensorrt = lazy_import_trt()",
    ],
)
def test_every_form_of_import_is_understood(names, found_in):
    name = "IInt8Calibrator" if "*" in names else "tensorrt.IInt8Calibrator"
    assert found_in(f"class C({name}): pass", start=f"{names}\n") == [(1, "removed", "IInt8Calibrator")]


@pytest.mark.parametrize(("older", "newer"), [("11.1", "8.6"), ("10.16", "10")])
def test_a_script_moves_to_a_newer_version(older, newer, tmp_path):
    with pytest.raises(ConfigError, match=r"--to must be a newer version than --from \(found from"):
        migrate(tmp_path / "x.py", older, newer)


def test_a_file_that_is_not_a_script_is_refused(tmp_path):
    script = tmp_path / "old.py"
    script.write_text("print 'x'", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"old\.py, line 1: The file is not a Python script"):
        migrate(script, "8.6", "11.1")
    with pytest.raises(UnknownNameError, match="Unknown TensorRT API version: '7'"):
        migrate(script, "7", "11.1")


# The tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("older", "newer", "since"), [(8, 10, "10.0"), (10, 11, "11.0")])
def test_there_is_advice_for_everything_that_a_version_removed(older, newer, since):
    lacking = []
    for owner, members in classes(older).items():
        after = classes(newer).get(owner)
        if owner in _CALLBACKS:
            continue
        for name, member in members.items():
            gone = after is None or name not in after
            read_only = not gone and after[name].is_read_only and not (member.is_read_only or member.is_method)
            if gone or read_only:
                found = _known(owner, name)
                lacking += [f"{owner}.{name}"] if found is None or found.since != since else []
    for owner, values in enumerations(older).items():
        for name in values:
            if name not in enumerations(newer).get(owner, {}):
                found = _known(owner, name)
                lacking += [f"{owner}.{name}"] if found is None or found.since != since else []
    assert not lacking


OF_THE_MODULE = {
    "CaffeParser",
    "IBlobNameToTensor",
    "IPluginFactoryV2",
    "ResizeMode",
    "SliceMode",
    "UffParser",
    "shutdown_protobuf_library",
}
"""Names of the module of 8.6 that are not in the tables."""


@pytest.mark.parametrize("table", [REMOVED, SIGNATURES, BEHAVIOR, DEPRECATED])
def test_all_advice_is_about_names_that_exist(table):
    known = set(OF_THE_MODULE)
    for major in (8, 10, 11):
        for members in (classes(major), enumerations(major)):
            known |= {*members, *(f"{owner}.{name}" for owner, names in members.items() for name in names)}
    inherited = {f"{owner}.{name}" for owner in PARENTS for name in ("tensorrt_version",)}
    assert not set(table) - known - inherited
    assert all(one.instead and not one.instead.endswith(".") for one in table.values())


# The command ----------------------------------------------------------------------------------------------------------


def command(*arguments):
    return CliRunner().invoke(commands.migrate, [str(one) for one in arguments], standalone_mode=False)


def test_the_command_prints_what_to_write_and_what_dryfit_translates(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        START + "config.int8_calibrator = None\nconfig.set_flag(trt.BuilderFlag.INT8)\n", encoding="utf-8"
    )
    done = command(script, "--from", "8.6", "--to", "11.1")
    lines = done.stdout.splitlines()
    assert lines[0] == "Removed"
    assert "  line 7: config.int8_calibrator: removed in TensorRT 11.0" in lines
    assert "    Build a model with Q/DQ nodes" in lines
    assert [line for line in lines if line.startswith("  lines 7, 8: `dryfit calibrate` computes the scales")]
    assert lines[-1] == f"{script}, TensorRT 8.6 to 11.1: 3 removed, 1 changed"
    assert done.return_value == 0


def test_the_command_fails_on_what_is_asked_for_and_gives_json(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(START, encoding="utf-8")
    done = command(script, "--from", "10", "--to", "11", "--json", "--fail-on", "removed>5,changed")
    answer = json.loads(done.stdout)
    assert answer["summary"]["changed"] == 1
    assert answer["findings"][0]["name"] == "Builder.create_network"
    assert [one["failed"] for one in answer["conditions"]] == [False, True]
    assert done.return_value == 1


# Programs of others ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "version", "path", "expected"),
    [
        ("samples-8.6.1", "8.6", "common.py", {"IExecutionContext.execute_async_v2", "ICudaEngine.max_batch_size"}),
        ("samples-8.6.1", "8.6", "network_api_pytorch_mnist/sample.py", {"INetworkDefinition.add_convolution"}),
        ("samples-8.6.1", "8.6", "introductory_parser_samples/onnx_resnet50.py", {"Builder.build_engine"}),
    ],
)
def test_samples_of_older_versions_need_what_the_newer_samples_did(folder, version, path, expected, shared):
    script = shared / "clients" / folder / path
    found = {one.name for one in migrate(script, version, "11.1").findings if one.kind == "removed"}
    assert expected <= found


def test_samples_of_the_newest_version_need_nothing_more(shared):
    scripts = sorted((shared / "clients" / "samples-11.1").rglob("*.py"))
    assert scripts
    found = [
        f"{script.name}, line {one.line}: {one.name}"
        for script in scripts
        for one in migrate(script, "10.16", "11.1").findings
        if one.kind == "removed" and one.counts
    ]
    assert not found


def test_samples_are_read_without_being_run(shared):
    for folder in ("samples-8.6.1", "samples-10.16"):
        for script in sorted(Path(shared / "clients" / folder).rglob("*.py")):
            migrate(script, "8.6", "11.1")
