"""What an addition costs: each is made in a copy of the packages, in as many places as the table says, and works.

`docs/architecture.md` has the table. A place is a new file, or one record, line or function in a file that is there.
Tests and generated pages are not counted, but for a layer kind, whose example is a place of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import attrs
import pytest
from docs.guides import run_in_fork

PACKAGES = ("core/dryfit", "targets/cpu/dryfit_cpu", "targets/gpu/dryfit_gpu", "targets/dla/dryfit_dla")
PACKAGES += ("plugins/dryfit_plugins", "frontends/tflite/dryfit_tflite")


@attrs.frozen
class Place:
    """One place of an addition.

    Attributes:
        path: of a file, from the folder in which the packages lie.
        text: what is added.
        before: the text that it is added before; the end of the file where none is given.
    """

    path: str
    text: str
    before: str = ""

    def write(self, site: Path) -> None:
        """Make the addition."""
        path = site / self.path
        path.parent.mkdir(exist_ok=True)
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        assert found.count(self.before) == 1 or not self.before, f"{self.path} has {self.before!r} not once"
        head, tail = found.split(self.before) if self.before else (found, "")
        path.write_text(head + self.text + self.before + tail, encoding="utf-8")


LIMIT = (
    Place(
        "dryfit_dla/limits/pooling.py",
        '    rule("pooling.narrow", each("window_size_nd", between(1, 5)), source="a test"),\n',
        before='    rule("pooling.padding",',
    ),
)

OPERATOR = (
    Place(
        "dryfit/onnx/operators/activation.py",
        """

@operator("Halve", domain="com.example")
def halve(node: Node) -> Operand:
    x = node[0]
    return multiply(node, x, scalar(node, 0.5, x))
""",
    ),
)

COMMAND = (
    Place(
        "dryfit/cli/commands/say_hello.py",
        """import click


@click.command()
def say_hello() -> None:
    \"\"\"Say hello.\"\"\"
    click.echo("hello")
""",
    ),
)

KIND = (
    Place(
        "dryfit/network/layers/activation.py",
        """@layer_kind("halving")
class Halving(Layer):
    \"\"\"x / 2.\"\"\"

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        return [TensorSpec(self.required(inputs, 0).shape, self.required(inputs, 0).dtype)]


""",
        before="class AddActivation",
    ),
    Place(
        "dryfit/reference/activation.py",
        """

from dryfit.network.layers.activation import Halving


@reference(Halving)
def halving(layer: Halving, inputs: Sequence[Array]) -> list[Array]:
    return [inputs[0] / 2]
""",
    ),
    Place(
        "dryfit/onnx/operators/activation.py",
        """

from dryfit.network.layers.activation import Halving


@operator("Halve", domain="com.example")
def halve(node: Node) -> Operand:
    return node.add(Halving(), node[0])
""",
    ),
    Place(
        "dryfit/testing/example_layers.py",
        """

EXAMPLES["halving"] = lambda examples: examples.network.add_layer(
    __import__("dryfit.network.layers.activation", fromlist=["Halving"]).Halving(), [examples.x]
)
""",
    ),
)

KERNEL = (
    Place(
        "dryfit_cpu/kernels/negation.py",
        """import numpy as np

from dryfit.network.layers.elementwise import UnaryOperation
from dryfit.target.kernels import kernel
from dryfit_cpu.codes import FLOATS


def _negates(group, specs):
    return group.main.op is UnaryOperation.NEG


@kernel("cpu.negate_all", kinds="unary", data_types=FLOATS, accepts=_negates, priority=99)
def negate(binding):
    (x,), (y,) = binding.inputs, binding.outputs
    return lambda: np.negative(x, out=y)
""",
    ),
    Place(
        "dryfit_cpu/kernels/__init__.py",
        "\nfrom dryfit_cpu.kernels import negation\n\nKERNELS += (negation.negate,)\n",
    ),
)

PASS = (
    Place(
        "dryfit/passes/simplify.py",
        """

@network_pass("trial")
def trial(network: Network) -> bool:
    network.rename_layer(network.layers[0], "tried")
    return True
""",
    ),
    Place(
        "dryfit/passes/canonical.py",
        "        __import__('dryfit.passes.simplify', fromlist=['trial']).trial,\n",
        before="        *quantization_passes(judge),",
    ),
)

PUBLIC_NAME = (
    Place("dryfit/__init__.py", '        "dryfit.short_text": "printable",\n', before='        "dryfit.building"'),
)

CALIBRATOR = (
    Place(
        "dryfit_plugins/calibrators/halfway.py",
        """from dryfit.quantization.calibrator import Calibrator, Solution


def solve(histogram):
    return Solution.of_threshold(histogram.magnitude / 2)


CALIBRATOR = Calibrator(name="halfway", title="half of the largest magnitude", solve=solve, source="for a test")
""",
    ),
    Place("{info}/entry_points.txt", "halfway = dryfit_plugins.calibrators.halfway:CALIBRATOR\n", before="legacy = "),
)

TFLITE_OPERATOR = (
    Place(
        "dryfit_tflite/operators/activation.py",
        """

@operator("STABLEHLO_COSINE")
def cosine(op: Operator) -> None:
    op.give(op.add(Unary(operation=UnaryOperation.COS), op.real(0)))
""",
    ),
)

MODEL_FORMAT = (
    Place(
        "dryfit_plugins/sizes.py",
        """from dryfit.network.network import Network
from dryfit.plugins.contributions import ImportedModel, ModelImporter


def read(source, options):
    network = Network("sizes")
    network.mark_output(network.add_input("x", "float32", (len(source),)))
    return ImportedModel(network)


IMPORTER = ModelImporter(
    name="sizes", title="Sizes", suffixes=(".sizes",), recognises=lambda first: first[:4] == b"SIZE", read=read
)
""",
    ),
    Place(
        "{info}/entry_points.txt", "sizes = dryfit_plugins.sizes:IMPORTER\n", before="tflite = dryfit_tflite:IMPORTER"
    ),
)

TARGET = (
    Place(
        "dryfit_npu/__init__.py",
        """from dryfit.target.checks import between, each
from dryfit.target.limits import LimitTable, rule, rules
from dryfit.target.target import Platform, Target

TARGET = Target(
    device="NPU",
    title="an NPU in the tree",
    platforms=[Platform("board", "first", "a board", source="for a test")],
    limits_at="dryfit_npu:LIMITS",
    simulated="nothing",
)
POOLING = rules("pooling", rule("pooling.window", each("window_size_nd", between(1, 3)), source="for a test"))
LIMITS = LimitTable("NPU", [*POOLING])
""",
    ),
    Place("{info}/entry_points.txt", "npu = dryfit_npu:TARGET\n", before="gpu = dryfit_gpu:TARGET"),
)

VERSION = (Place("dryfit_dla/platforms.py", "    (10, 99),\n", before=')\n"""TensorRT versions of JetPack'),)

_MODEL = """
import numpy as np
from onnx import TensorProto, helper
import dryfit

node = helper.make_node("Halve", ["x"], ["y"], domain="com.example")
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy")
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
network = dryfit.network_from_onnx(helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets))
engine = dryfit.Builder().build_engine(network, dryfit.BuilderConfig())
assert engine.create_execution_context().run(np.array([[-2, 3]], np.float32))["y"].tolist() == [[-1, 1.5]]
"""

_RELU = """
import numpy as np
import dryfit

network = dryfit.Network("n")
x = network.add_input("x", dryfit.DataType.FLOAT, (1, 4, 8, 8))
"""

ADDITIONS = {
    "a limit": (
        LIMIT,
        _RELU
        + """
layer = network.add_pooling_nd(x, dryfit.PoolingType.MAX, (7, 7))
network.mark_output(layer.get_output(0))
verdict = dryfit.BuilderConfig().can_run_on(layer, "DLA")
assert "dla.pooling.narrow" in [one.rule for one in verdict.violations], verdict
assert "window_size_nd must be 1 to 5" in str(dryfit.explain_rule("dla.pooling.narrow"))
""",
    ),
    "a kernel": (
        KERNEL,
        _RELU
        + """
layer = network.add_unary(x, dryfit.network.layers.elementwise.UnaryOperation.NEG)
network.mark_output(layer.get_output(0))
engine = dryfit.Builder().build_engine(network, dryfit.BuilderConfig())
assert [one.kernel for one in engine.plan.operations] == ["cpu.negate_all"], engine.plan.operations
ones = np.ones((1, 4, 8, 8), np.float32)
(found,) = engine.create_execution_context().run(ones).values()
assert (found == -ones).all()
""",
    ),
    "a layer kind": (
        KIND,
        _MODEL
        + """
from dryfit.testing.example_layers import EXAMPLES
from dryfit.network.layer import LAYER_KINDS
assert set(EXAMPLES) == set(LAYER_KINDS) - {"plugin", "quantized_operator"}
assert [layer.kind for layer in network.layers] == ["halving"]
""",
    ),
    "an ONNX operator": (OPERATOR, _MODEL),
    "a command": (
        COMMAND,
        """
from click.testing import CliRunner
from dryfit.cli.main import dryfit
assert CliRunner().invoke(dryfit, ["say-hello"]).output == "hello\\n"
assert "say-hello" in CliRunner().invoke(dryfit, ["--help"]).output
""",
    ),
    "a pass": (
        PASS,
        _RELU
        + """
network.mark_output(network.add_activation(x, dryfit.ActivationType.RELU).get_output(0))
engine = dryfit.Builder().build_engine(network, dryfit.BuilderConfig())
assert "trial" in engine.plan.settings["passes"]
assert [name for one in engine.plan.operations for name in one.layers] == ["tried"]
""",
    ),
    "a calibrator": (
        CALIBRATOR,
        _RELU
        + """
network.mark_output(network.add_activation(x, dryfit.ActivationType.RELU).get_output(0))
from dryfit.plugins.calibrators import calibrator
samples = [np.full((1, 4, 8, 8), 8, np.float32)]
found = dryfit.calibrate_ranges(network, calibrator("halfway"), samples, full_range=False)
assert abs(found["x"].dynamic_range.threshold - 4) < 0.01, found
""",
    ),
    "a TFLite operator": (
        TFLITE_OPERATOR,
        "from dryfit_tflite.registry import operator_functions; assert 'STABLEHLO_COSINE' in operator_functions()",
    ),
    "a model format": (
        MODEL_FORMAT,
        """
from dryfit.plugins.model_importers import importer_of
assert importer_of(b"SIZE 5").title == "Sizes"
""",
    ),
    "a target in the tree": (
        TARGET,
        _RELU
        + """
layer = network.add_activation(x, dryfit.ActivationType.RELU)
network.mark_output(layer.get_output(0))
config = dryfit.BuilderConfig()
config.default_device_type = "NPU"
assert {one.device for one in dryfit.Builder().build_engine(network, config).plan.segments} == {"NPU"}
""",
    ),
    "a TensorRT version": (
        VERSION,
        """
import dryfit
config = dryfit.BuilderConfig()
config.set_software("DLA", "10.99")
assert config.software("DLA") == (10, 99)
""",
    ),
    "a public name": (PUBLIC_NAME, "import dryfit; assert dryfit.printable('x') == 'x' and 'printable' in dir(dryfit)"),
}


def costs(repository: Path) -> dict[str, int]:
    """Addition to number of places, as the architecture's table has them."""
    text = (repository / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("## What an addition costs\n")[2].partition("\n## ")[0]
    return {name: int(places) for name, places in re.findall(r"^\| ([^|]+) \| (\d+) \|", table, re.MULTILINE)}


def test_every_row_of_the_table_is_tried(repository: Path) -> None:
    assert costs(repository).keys() == ADDITIONS.keys()


@pytest.mark.parametrize("addition", ADDITIONS)
def test_an_addition_works_in_as_many_places_as_the_table_says(repository: Path, tmp_path: Path, addition: str) -> None:
    places, code = ADDITIONS[addition]
    assert len(places) == costs(repository)[addition]
    info = Path(str(distribution("dryfit").locate_file(""))) / f"dryfit-{distribution('dryfit').version}.dist-info"
    for folder in (*(repository / one for one in PACKAGES), info):
        shutil.copytree(folder, tmp_path / folder.name)  # with compiled files, which saves most of the time
    before = run_in_fork(["python", "-c", code], str(repository), {**os.environ})
    assert before.code, "it is there without the addition"
    for place in places:
        attrs.evolve(place, path=place.path.format(info=info.name)).write(tmp_path)
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
