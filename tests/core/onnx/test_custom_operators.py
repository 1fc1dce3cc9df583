"""Operators that are not ONNX's: layer plugins, importers of installed packages, and refusals that say what to do."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.core.plugins.packages import install as install_package

from dryfit.errors import OnnxImportError
from dryfit.network import plugin_table
from dryfit.network.layer_plugin import LayerPlugin
from dryfit.network.plugin_table import register_layer_plugin
from dryfit.network.tensor import TensorSpec
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.problems import ErrorCode, ModelRefusedError
from dryfit.plugins import registry
from dryfit.plugins.discovery import HOOKS, LAYERS, ONNX_OPERATORS
from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.reference.executor import run_reference

MODULES = {
    "acme_onnx": """
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.onnx.composition import elementwise
from dryfit.plugins.contributions import OnnxOperator


def twice(node):
    return elementwise(node, ElementWiseOperation.SUM, node[0], node[0])


def negative(node):
    return elementwise(node, ElementWiseOperation.SUB, node.array([0.0], "float32"), node[0])


def broken(node):
    raise RuntimeError("the board is on fire")


TWICE = OnnxOperator("Bend", "com.acme", twice)
NEGATIVE = OnnxOperator("Bend", "com.acme", negative, since=2)
BROKEN = OnnxOperator("Bend", "com.acme", broken)
NUMBER = OnnxOperator("Bend", "com.acme", lambda node: 3)
RELU = OnnxOperator("Relu", "com.acme", twice)
""",
    "acme_fire": "raise RuntimeError('the board is on fire')",
}
X = np.arange(1, 4, dtype=np.float32)


class Recorded(LayerPlugin):
    """The same; `fields` has what the node said."""

    def __init__(self, namespace="", version="1"):
        self.plugin_name, self.plugin_namespace, self.plugin_version = "Bend", namespace, version
        self.fields: Any = None

    def output_specs(self, fields, inputs):
        self.fields = dict(fields)
        return [TensorSpec(inputs[0].shape, inputs[0].dtype)]

    def enqueue(self, fields, inputs):
        return [inputs[0]]


@pytest.fixture(autouse=True)
def install(tmp_path, monkeypatch):
    """A function that installs entry points: (group, name, value), or (group, name, value, distribution)."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)

    def installed(*entries, disabled=""):
        packages: dict[str, Any] = {}
        for group, name, value, *distribution in entries:
            packages.setdefault((*distribution, "acme")[0], {}).setdefault(group, {})[name] = value
        for distribution, groups in packages.items():
            install_package(tmp_path, distribution, groups, MODULES)
        monkeypatch.setattr(registry, "__dict__", vars(PluginRegistry(disabled=disabled)))

    installed()
    return installed


def model(op_type="Bend", domain="com.acme", opset=1, attributes=(), **simple):
    node = helper.make_node(op_type, ["x"], ["y"], name="bend", domain=domain, **simple)
    node.attribute.extend(attributes)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "y")]
    graph = helper.make_graph([node], "net", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, opset)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(parsed):
    return run_reference(network_from_onnx(parsed), {"x": X})["y"].tolist()


def refusal(parsed):
    with pytest.raises(ModelRefusedError) as caught:
        network_from_onnx(parsed)
    (problem,) = caught.value.problems
    assert (problem.node_name, problem.node_operator) == ("bend", "com.acme.Bend")
    return problem


def key_in(parsed):
    return network_from_onnx(parsed).layers[0].key


# Layer plugins --------------------------------------------------------------------------------------------------------


def test_the_domain_is_the_namespace_where_a_plugin_has_it_and_else_none_is():
    register_layer_plugin(Recorded())
    assert key_in(model()) == ("Bend", "1", "")
    register_layer_plugin(Recorded("com.acme"))
    assert key_in(model()) == ("Bend", "1", "com.acme")


def test_attributes_say_version_and_namespace():
    for plugin in (Recorded(), Recorded("mine"), Recorded("mine", "2")):
        register_layer_plugin(plugin)
    assert key_in(model(plugin_namespace="mine")) == ("Bend", "1", "mine")
    assert key_in(model(plugin_namespace="mine", plugin_version="2")) == ("Bend", "2", "mine")
    assert "Bend version 1 with namespace 'other'" in refusal(model(plugin_namespace="other")).reason


def test_attributes_of_all_types_become_fields():
    plugin = Recorded()
    register_layer_plugin(plugin)
    table = np.arange(4, dtype=np.int8).reshape(2, 2)
    tensors = [numpy_helper.from_array(array) for array in (table, np.float32(2.5))]
    run(
        model(
            i=7,
            f=0.5,
            s="word",
            b=b"\xff\x00",
            ints=[1, 2],
            floats=[0.5, 1.5],
            strings=["a", b"\xfe"],
            t=tensors[0],
            tensors=tensors,
            attributes=[helper.make_attribute("none", [], attr_type=7)],
        )
    )
    found = plugin.fields
    arrays = {name: found.pop(name) for name in ("t", "tensors")}
    plain = {"i": 7, "f": 0.5, "s": "word", "b": b"\xff\x00", "ints": (1, 2), "floats": (0.5, 1.5)}
    assert found == {**plain, "strings": ("a", b"\xfe"), "none": ()}
    np.testing.assert_array_equal(arrays["t"], table)
    assert [array.dtype.name for array in arrays["tensors"]] == ["int8", "float32"]


@pytest.mark.parametrize(
    ("attribute", "kind"),
    [
        (helper.make_attribute("g", helper.make_graph([], "inner", [], [])), "GRAPH"),
        (helper.make_attribute("t", helper.make_tensor_type_proto(1, [1])), "TYPE_PROTO"),
    ],
)
def test_attributes_that_are_no_values_are_refused(attribute, kind):
    register_layer_plugin(Recorded())
    problem = refusal(model(attributes=[attribute]))
    assert problem.code is ErrorCode.UNSUPPORTED_NODE_ATTR
    assert f"found {kind}; allowed: INT, FLOAT" in problem.reason


# Importers of packages ------------------------------------------------------------------------------------------------


def test_an_installed_importer_adds_the_layers(install):
    install((ONNX_OPERATORS, "com.acme::Bend", "acme_onnx:TWICE"))
    assert run(model()) == [2, 4, 6]


def test_the_newest_importer_that_is_not_newer_than_the_model_is_taken(install):
    entries = [(ONNX_OPERATORS, "com.acme::Bend", f"acme_onnx:{name}", name) for name in ("TWICE", "NEGATIVE")]
    install(*entries)
    assert [run(model(opset=opset)) for opset in (1, 2, 3)] == [[2, 4, 6], [-1, -2, -3], [-1, -2, -3]]


def test_only_the_operators_own_importer_is_loaded(install):
    install((ONNX_OPERATORS, "com.acme::Bend", "acme_onnx:TWICE"), (ONNX_OPERATORS, "com.acme::Fold", "acme_fire:X"))
    run(model())
    assert "acme_fire" not in sys.modules


def test_onnxs_own_operators_are_not_replaced(install):
    install((ONNX_OPERATORS, "::Relu", "acme_onnx:RELU"), (ONNX_OPERATORS, "Relu", "acme_onnx:RELU"))
    assert run(model("Relu", "")) == [1, 2, 3]


def test_two_importers_of_one_operator_are_refused_with_both_owners(install):
    install(*((ONNX_OPERATORS, "com.acme::Bend", "acme_onnx:TWICE", name) for name in ("acme", "other")))
    assert "found com.acme::Bend 1.2 (acme), com.acme::Bend 1.2 (other)" in refusal(model()).reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("BROKEN", "The operator's importer failed (found RuntimeError: the board is on fire)"),
        ("NUMBER", "importer returned an unexpected type (found int; allowed: an operand, or a list of operands)"),
    ],
)
def test_an_importer_that_fails_is_told_with_its_package(install, value, reason):
    install((ONNX_OPERATORS, "com.acme::Bend", f"acme_onnx:{value}"))
    problem = refusal(model())
    assert reason in problem.reason
    assert problem.reason.endswith("the authors of the plugin com.acme::Bend 1.2 (acme)")


# Refusals -------------------------------------------------------------------------------------------------------------


def test_an_unknown_operator_is_told_with_what_was_looked_for_and_who_brings_layers(install):
    register_layer_plugin(Recorded("com.acme", "3"))
    install((LAYERS, "acme::Bent", "acme_fire:X"))
    reason = refusal(model()).reason
    for words in (
        "found com.acme opset 1",
        "an importer of com.acme::Bend, or a layer plugin Bend version 1 with namespace 'com.acme' or no namespace",
        "Did you mean com.acme::Bend version 3?",
        "Install the package that provides it, if one exists (installed packages with layers: acme 1.2)",
    ):
        assert words in reason
    assert "acme_fire" not in sys.modules


@pytest.mark.parametrize(
    ("group", "name"),
    [(LAYERS, "Bend"), (LAYERS, "com.acme::Bend"), (ONNX_OPERATORS, "com.acme::Bend"),
     (HOOKS, "acme")],
)  # fmt: skip
def test_a_broken_plugin_that_might_have_brought_it_is_named(install, group, name):
    install((group, name, "acme_fire:X" if group != HOOKS else "acme_fire"))
    problem = refusal(model())
    assert problem.code is ErrorCode.UNSUPPORTED_NODE
    assert "RuntimeError: the board is on fire" in problem.reason
    assert "1.2" in problem.reason


@pytest.mark.parametrize(("group", "name"), [(LAYERS, "Bend"), (ONNX_OPERATORS, "com.acme::Bend"), (HOOKS, "hooks")])
def test_a_plugin_that_is_switched_off_is_named(install, group, name):
    install((group, name, "acme_fire:X"), disabled="acme")
    assert f"{name} 1.2 (acme) is switched off" in refusal(model()).reason


def test_what_a_plugin_refuses_is_a_reason_of_the_node():
    class Picky(Recorded):
        def output_specs(self, fields, inputs):
            raise ValueError("the moon is full")

    register_layer_plugin(Picky())
    with pytest.raises(
        OnnxImportError, match=r"node 'bend' \(com\.acme\.Bend\): .*rejected the layer: the moon is full"
    ):
        network_from_onnx(model())


def test_an_operator_of_onnx_itself_is_not_said_to_need_a_package():
    with pytest.raises(ModelRefusedError) as caught:
        network_from_onnx(model(op_type="MaxRoiPool", domain=""))
    (problem,) = caught.value.problems
    reason = problem.reason
    assert "Install" not in reason
    assert "write a layer plugin MaxRoiPool" in reason


def test_nodes_that_are_refused_alike_are_told_together():
    nodes = [
        helper.make_node("QLinearSigmoid", ["x", *"szsz"], [f"y{i}"], name=f"node{i}", domain="com.microsoft")
        for i in range(58)
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.UINT8, [3]) for name in ("x", "s", "z", "y0")]
    graph = helper.make_graph(nodes, "net", values[:3], values[3:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    with pytest.raises(ModelRefusedError) as caught:
        network_from_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    assert len(caught.value.problems) == 58
    text = str(caught.value)
    assert text.count("--quantize-method") == 1
    assert "'node1', 'node2' and 55 more" in text
