"""Plans of quantized networks: dequantizations may be repeated, and nothing else may."""

import attrs
import pytest
from tests.core.builder.networks import activation, image_network
from tests.core.builder.test_quantized_groups_on_devices import convolution, quantized

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.engine.plan_check import check_plan
from dryfit.errors import EngineFileError
from dryfit.network.layers.assertion import AssertionRecord


@pytest.fixture(scope="module")
def plan():
    """Operations: x.q; x.dq, c.w, c, y.q; x.dq, r, z.q; and y.dq and z.dq, which are outputs."""
    network, x = image_network()
    x = quantized(network, x, "x")
    network.mark_output(quantized(network, convolution(network, x, "c"), "y"))
    network.mark_output(quantized(network, activation(network, x, "r"), "z"))
    config = BuilderConfig()
    config.default_device_type = "CPU"
    made = Builder().build_engine(network, config).plan
    check_plan(made)
    return made


def with_layers(plan, changes):
    """The plan with other layers in operations, which are named by their last layers; None leaves one out."""
    operations = [(one, changes.get(one.layers[-1], one.layers)) for one in plan.operations]
    return attrs.evolve(
        plan, operations=[attrs.evolve(one, layers=layers) for one, layers in operations if layers is not None]
    )


def test_a_dequantization_may_be_repeated(plan):
    holders = [operation.layers[-1] for operation in plan.operations if "x.dq" in operation.layers]
    assert sorted(holders) == ["y.q", "z.q"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"z.q": ["x.dq", "c.w", "r", "z.q"]}, "nothing reads 'c.w'"),
        ({"z.q": ["x.dq", "r", "z.q", "x.q"]}, "A layer must run only once"),
        ({"z.q": ["x.dq", "x.dq", "r", "z.q"]}, "A layer must run only once"),
        ({"z.q": ["r", "x.dq", "z.q"]}, "An operation must run after its inputs are computed"),
        ({"z.q": ["r", "z.q"]}, "An operation must run after its inputs are computed"),
        ({"z.q": ["x.dq", "z.q"]}, "nothing reads 'x.dq'"),
        ({"z.q": ["x.dq", "r"], "z.dq": ["z.q", "x.dq", "z.dq"]}, "nothing reads 'x.dq'"),
        ({"y.dq": None}, "Every layer must belong to an operation"),
        ({"y.q": ["x.dq", "c.w", "c", "y.q", "y.dq"], "y.dq": ["y.dq"]}, "A layer must run only once"),
    ],
)
def test_a_plan_that_cannot_run_is_refused(plan, changes, message):
    with pytest.raises(EngineFileError) as caught:
        check_plan(with_layers(plan, changes))
    assert message in str(caught.value)


def test_an_output_that_groups_compute_only_for_themselves_is_refused():
    network, x = image_network()
    x = quantized(network, x, "x")
    network.mark_output(x)
    network.mark_output(quantized(network, activation(network, x, "r"), "y"))
    config = BuilderConfig()
    config.default_device_type = "CPU"
    made = Builder().build_engine(network, config).plan
    with pytest.raises(EngineFileError, match="Every network output must be computed by an operation"):
        check_plan(with_layers(made, {"x.dq": None}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_outputs": ["no tensor"]}, "A hidden output must be an output of the network"),
        ({"hidden_outputs": ["y.dq"] * 2}, "A hidden output must be an output of the network"),
        ({"debug_tensors": ["c"]}, "A debug tensor must be an input or an output of the network"),
        (
            {"assertions": [AssertionRecord("a", "message", "no tensor")]},
            "The condition of an assertion must be an input or an output of the network",
        ),
        ({"aliased_inputs": {"y.dq": "c"}}, "An output must be aliased to an input"),
        ({"aliased_inputs": {"c": "x"}}, "An output must be aliased to an input"),
    ],
)
def test_tensors_that_runs_watch_must_exist(plan, changes, message):
    names = {tensor.name for tensor in plan.network.outputs} | {tensor.name for tensor in plan.network.inputs}
    assert {"x", "y.dq"} <= names
    with pytest.raises(EngineFileError) as caught:
        check_plan(attrs.evolve(plan, **changes))
    assert message in str(caught.value)


def test_a_plan_must_have_an_output_that_callers_get(plan):
    with pytest.raises(EngineFileError, match="at least one output"):
        check_plan(attrs.evolve(plan, hidden_outputs=[tensor.name for tensor in plan.network.outputs]))
