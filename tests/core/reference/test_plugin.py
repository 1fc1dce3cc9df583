"""Plugin layers run what the plugin says, and check it."""

import numpy as np
import pytest

from dryfit.errors import ExecutionError
from dryfit.network import plugin_table
from dryfit.network.data_types import DataType
from dryfit.network.layer_plugin import LayerPlugin
from dryfit.network.layers.plugin import Plugin
from dryfit.network.plugin_table import register_layer_plugin
from dryfit.network.tensor import TensorSpec
from dryfit.reference.registry import evaluate


class Scaled(LayerPlugin):
    """Multiplies by a field; misbehaves as the field `fault` says."""

    plugin_name = "Scaled"

    def output_specs(self, fields, inputs):
        return [TensorSpec(inputs[0].shape, inputs[0].dtype)]

    def enqueue(self, fields, inputs):
        fault = fields.get("fault", "")
        if fault == "raises":
            raise KeyError("lost")
        if fault == "writes":
            inputs[0][:] = 0
        output = inputs[0] * np.float32(fields["factor"])
        return {"": [output], "shape": [output[:1]], "type": [output.astype(np.float64)], "none": []}.get(
            fault, [output]
        )


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    register_layer_plugin(Scaled())


def _layer(**fields):
    return Plugin(name="mine", plugin_name="Scaled", fields={"factor": 3.0, **fields})


def test_it_computes_what_the_plugin_says():
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(_layer(), [x])[0], x * 3)


@pytest.mark.parametrize("fault", ["shape", "type", "none"])
def test_outputs_that_are_not_as_declared_are_refused(fault):
    with pytest.raises(ExecutionError, match="The plugin's outputs must match its `output_specs`") as caught:
        evaluate(_layer(fault=fault), [np.ones(3, np.float32)])
    assert "layer 'mine', plugin 'Scaled'" in str(caught.value)


@pytest.mark.parametrize(("fault", "text"), [("raises", "lost"), ("writes", "read-only")])
def test_whatever_a_plugin_raises_is_told_with_the_layers_name(fault, text):
    with pytest.raises(ExecutionError, match=text) as caught:
        evaluate(_layer(fault=fault), [np.ones(3, np.float32)])
    assert caught.value.where == "layer 'mine', plugin 'Scaled'"
    assert caught.value.__cause__ is not None


def test_a_plugin_gets_none_for_an_absent_input():
    class Absent(Scaled):
        plugin_name = "Absent"

        def output_specs(self, fields, inputs):
            return [TensorSpec((2,), DataType.FLOAT)]

        def enqueue(self, fields, inputs):
            assert inputs[0] is None
            return [np.ones(2, np.float32)]

    register_layer_plugin(Absent())
    assert evaluate(Plugin(plugin_name="Absent"), [None, np.ones(1, np.float32)])[0].tolist() == [1, 1]
