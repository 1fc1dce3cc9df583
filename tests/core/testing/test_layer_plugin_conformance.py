"""The kit of layer plugins finds what is wrong with plugins that are wrong on purpose, and nothing else."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from dryfit.network import plugin_table
from dryfit.network.data_types import DataType
from dryfit.network.layer_plugin import LayerPlugin, PluginField
from dryfit.network.plugin_function import layer_plugin
from dryfit.network.tensor import TensorSpec
from dryfit.testing.layer_plugin_conformance import LayerPluginConformance

FLOAT, HALF = DataType.FLOAT, DataType.HALF


class Right(LayerPlugin):
    """`scale * x + bias`, which does everything as it should."""

    plugin_name, plugin_namespace = "Right", "kit"
    declared_fields = {"scale": PluginField(float, default=2.0), "bias": PluginField(np.ndarray)}

    def output_specs(self, fields, inputs):
        if inputs[0].rank < 1:
            raise ValueError("the input has at least one axis")
        return [TensorSpec(inputs[0].shape, inputs[0].dtype)]

    def format_combinations(self, fields, inputs):
        return [[(HALF, "HWC"), (HALF, "HWC")], [FLOAT, FLOAT]]

    def enqueue(self, fields, inputs):
        return [(fields["scale"] * inputs[0].astype(np.float32) + fields["bias"]).astype(inputs[0].dtype)]


class NamelessDefault(Right):
    declared_fields = {**Right.declared_fields, "scale": PluginField(float, default="two")}


class WrongNumbers(Right):
    def enqueue(self, fields, inputs):
        return [super().enqueue(fields, inputs)[0] + np.asarray(0.5, inputs[0].dtype)]


class WrongShape(Right):
    def enqueue(self, fields, inputs):
        return [super().enqueue(fields, inputs)[0][..., :1]]


class WrongType(Right):
    def enqueue(self, fields, inputs):
        return [super().enqueue(fields, inputs)[0].astype(np.float64)]


class StaticOnly(Right):
    def output_specs(self, fields, inputs):
        shape = tuple(abs(extent) for extent in inputs[0].shape)
        return [TensorSpec(shape, inputs[0].dtype)]


class WritesInputs(Right):
    def enqueue(self, fields, inputs):
        result = super().enqueue(fields, inputs)
        if inputs[0].flags.writeable:
            inputs[0][...] = 0
        return result


class Counts(Right):
    runs = 0

    def enqueue(self, fields, inputs):
        self.runs += 1
        return [super().enqueue(fields, inputs)[0] + np.asarray(self.runs * 1e-7, inputs[0].dtype)]


class TakesAnything(Right):
    declared_fields = None

    def enqueue(self, fields, inputs):
        return super().enqueue({"scale": 2.0, **fields}, inputs)


class ForgetsBias(Right):
    declared_fields = {**Right.declared_fields, "bias": PluginField(np.ndarray, default=np.zeros(1, np.float32))}

    def serialized_fields(self, fields):
        return {"scale": fields["scale"]}


class LyingCombination(Right):
    def enqueue(self, fields, inputs):
        return [super().enqueue(fields, inputs)[0].astype(np.float32)]


class NeedsRowMajor(Right):
    def enqueue(self, fields, inputs):
        flat = np.ravel(inputs[0], order="K")  # reads memory as if it were always row-major
        return super().enqueue(fields, [flat.reshape(inputs[0].shape)])


class SharesMemory(Right):
    def __init__(self):
        self.kept = np.empty(0)
        self.meeting = threading.Barrier(2)

    def enqueue(self, fields, inputs):
        self.kept = super().enqueue(fields, inputs)[0]
        if threading.current_thread() is threading.main_thread():
            return [self.kept]
        self.kept = self.kept + np.asarray(self.meeting.wait(10), self.kept.dtype)
        return [self.kept]


X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(1, 2, 3, 4)
BIAS = np.array([0.5], np.float32)

FAULTS = [
    (NamelessDefault, "test_its_fields_are_declared", "field 'scale': its default is str 'two', not a number"),
    (WrongNumbers, "test_it_computes_what_the_oracle_says", "24 of 24 elements are wrong"),
    (WrongShape, "test_it_computes_what_the_oracle_says", "The plugin's outputs must match its `output_specs`"),
    (WrongType, "test_it_computes_what_the_oracle_says", "float64"),
    (StaticOnly, "test_its_shapes_hold", "outputs FP32 (1, 1, 1, 1), but FP32 (1, 2, 3, 4)"),
    (WritesInputs, "test_it_leaves_its_inputs", "input 0 was changed"),
    (Counts, "test_it_computes_the_same_again", "two runs with the same inputs differ"),
    (TakesAnything, "test_wrong_fields_are_refused", "fields {'scale': 'big'} are taken"),
    (ForgetsBias, "test_its_fields_survive", "the loaded engine computes something else"),
    (LyingCombination, "test_it_computes_in_each_combination", "HALF HWC -> HALF HWC: output 0 is float32"),
    (NeedsRowMajor, "test_it_computes_in_each_combination", "HALF HWC -> HALF HWC: output 0 is"),
    (SharesMemory, "test_contexts_in_two_threads", "give other outputs than one alone"),
]
ALSO = {
    NamelessDefault: {"test_wrong_fields", "test_it", "test_contexts", "test_its"},  # no layer can be made
    WrongShape: {"test_it_computes_the_same", "test_it_computes_in_each", "test_its_fields", "test_contexts"},
    WrongType: {"test_it_computes_the_same", "test_it_computes_in_each", "test_its_fields", "test_contexts"},
    WrongNumbers: {"test_it_computes_in_each"},
    Counts: {"test_its_fields_survive", "test_contexts"},
}
"""What else fails for the same reason."""


@pytest.fixture(autouse=True)
def _empty_table(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})


def kit_of(tested):
    class Kit(LayerPluginConformance):
        plugin = tested
        examples = [({"bias": BIAS}, [X]), ({"bias": BIAS, "scale": -1.5}, [X[:, :, ::-1]])]
        wrong_fields = [{"scale": "big"}]
        is_installed = False

        def oracle(self, fields, inputs):
            scale, bias = fields.get("scale", 2.0), float(fields["bias"][0])
            return [np.array([scale * float(v) + bias for v in inputs[0].flat]).reshape(inputs[0].shape)]

    return Kit


def outcomes(kit, tmp_path, monkeypatch):
    """Name of each test of a kit to the messages of its failures, run as pytest would."""
    found = {}
    instance = kit()
    for name in sorted(dir(kit)):
        if not name.startswith("test_"):
            continue
        function = getattr(instance, name)
        arguments = function.__code__.co_varnames[1 : function.__code__.co_argcount]
        fixtures = {"monkeypatch": monkeypatch, "tmp_path": tmp_path}
        varied = next((one for one in arguments if one in kit.cases), None)
        cases = (kit.cases[varied](instance) or [("none", None)]) if varied else [("", None)]
        for _, case in cases:
            given = {one: fixtures.get(one, case) for one in arguments}
            with monkeypatch.context() as patch:
                given = {one: patch if one == "monkeypatch" else value for one, value in given.items()}
                try:
                    function(**given)
                except pytest.skip.Exception:
                    continue
                except (pytest.fail.Exception, Exception) as error:  # noqa: BLE001  as pytest, it reports whatever is raised
                    found.setdefault(name, []).append(str(error))
    return found


def test_a_plugin_that_is_right_passes(tmp_path, monkeypatch):
    assert outcomes(kit_of(Right()), tmp_path, monkeypatch) == {}


@pytest.mark.parametrize(("wrong", "test", "message"), FAULTS, ids=[wrong.__name__ for wrong, _, _ in FAULTS])
def test_a_wrong_plugin_fails_for_its_fault_and_nothing_else(wrong, test, message, tmp_path, monkeypatch):
    failed = outcomes(kit_of(wrong()), tmp_path, monkeypatch)
    (name,) = [one for one in failed if one.startswith(test)]
    assert any(message in text for text in failed.pop(name)), failed
    assert [one for one in failed if not one.startswith(tuple(ALSO.get(wrong, ())))] == []


def test_an_oracle_that_uses_the_plugin_is_noticed(tmp_path, monkeypatch):
    @layer_plugin("Twice", namespace="kit")
    def twice(x):
        return x * np.float32(2)

    class Kit(LayerPluginConformance):
        plugin = twice
        examples = [({}, [X])]
        is_installed = False

        def oracle(self, fields, inputs):
            return [twice(inputs[0])]

    failed = outcomes(Kit, tmp_path, monkeypatch)
    assert failed == {"test_it_computes_what_the_oracle_says": ["the oracle uses the plugin that it is to judge"]}


def test_a_kit_that_says_too_little_fails(tmp_path, monkeypatch):
    class NoOracle(LayerPluginConformance):
        plugin = Right()
        examples = [({"bias": BIAS}, [X])]

    class NoExamples(LayerPluginConformance):
        plugin = Right()

    failed = outcomes(NoOracle, tmp_path, monkeypatch)
    assert "the kit has no `oracle`" in failed["test_it_computes_what_the_oracle_says"][0]
    assert "entry point 'kit::Right' in the group 'dryfit.layers'" in failed["test_a_packages_entry_point_names_it"][0]
    assert (
        "the kit has no `examples`" in outcomes(NoExamples, tmp_path, monkeypatch)["test_it_has_a_name_and_examples"][0]
    )
