import numpy as np
import pytest
from tests.core.builder.networks import activation, add, chain, convolution, image_network

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.reference.executor import run_reference
from dryfit.target.fusions import Fusion

DEVICE = """
from dryfit.target.fusions import Fusion
from dryfit.target.limits import LimitTable
from dryfit.target.target import Platform, Target

FUSIONS = []
LIMITS = LimitTable("ACME_FUSER", [], supported_kinds={"convolution", "activation", "elementwise"})
PLATFORMS = [Platform("one", "one", "One")]
TARGET = Target("ACME_FUSER", "Acme", PLATFORMS, limits_at="acme_fuser:LIMITS", fusions_at="acme_fuser:FUSIONS")
"""


@pytest.fixture
def groups(install, monkeypatch):
    """A function from a network and fusions to the groups that a device with these fusions runs."""
    install("acme_fuser", DEVICE, {"dryfit.targets": {"acme-fuser": "acme_fuser:TARGET"}})
    import acme_fuser

    def run(network, *fusions):
        monkeypatch.setattr(acme_fuser, "FUSIONS", list(fusions))
        engine = Builder().build_engine(network, config())
        x = np.random.default_rng(0).standard_normal((1, 8, 6, 6)).astype(np.float32)
        found = engine.create_execution_context(1).run({"x": x})
        for name, array in run_reference(network, {"x": x}).items():
            np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)
        return [list(operation.layers) for operation in engine.plan.operations]

    return run


def config():
    made = BuilderConfig()
    made.default_device_type = "ACME_FUSER"
    return made


CONVOLUTION_RELU = Fusion("convolution-relu", ["convolution", "activation"])
CONVOLUTION_SUM_RELU = Fusion("convolution-sum-relu", ["convolution", "elementwise", "activation"])


def test_a_device_that_declares_no_fusion_at_all_joins_nothing(groups):
    assert groups(chain("c", "r")) == [["c0"], ["r1"]]


def test_only_declared_chains_are_joined(groups):
    assert groups(chain("c", "r", "r", "c", "r"), CONVOLUTION_RELU) == [["c0", "r1"], ["r2"], ["c3", "r4"]]


def residual_block(*, ends_with_relu):
    """skip and c, two convolutions; their sum; and maybe a ReLU."""
    network, x = image_network()
    skip = convolution(network, x, "skip")
    last = add(network, convolution(network, x, "c", seed=1), skip, "sum")
    network.mark_output(activation(network, last, "relu") if ends_with_relu else last)
    return network


def test_a_chain_is_joined_whose_beginning_is_no_fusion(groups):
    assert groups(residual_block(ends_with_relu=True), CONVOLUTION_SUM_RELU) == [["skip"], ["c", "sum", "relu"]]


def test_a_beginning_without_its_end_is_cut_back(groups):
    assert groups(residual_block(ends_with_relu=False), CONVOLUTION_SUM_RELU) == [["skip"], ["c"], ["sum"]]


def test_what_is_cut_off_may_be_another_fusion(groups):
    longer = Fusion("longer", ["convolution", "elementwise", "activation", "activation"])
    sum_relu = Fusion("sum-relu", ["elementwise", "activation"])
    assert groups(residual_block(ends_with_relu=True), longer, sum_relu) == [["skip"], ["c"], ["sum", "relu"]]


def test_where_may_refuse_a_chain(groups):
    narrow = Fusion("narrow", ["convolution", "activation"], where=lambda layers: layers[0].num_output_maps < 8)
    assert groups(chain("c", "r"), narrow) == [["c0"], ["r1"]]


def test_the_build_log_names_the_fusion(groups, tmp_path):
    groups(chain("c", "r"), CONVOLUTION_RELU)
    builder = Builder()
    builder.dump_stages_directory = tmp_path / "stages"
    builder.build_engine(chain("c", "r"), config())
    (dump,) = (tmp_path / "stages").glob("*choose-kernels.txt")
    assert "fusion convolution-relu" in dump.read_text()
