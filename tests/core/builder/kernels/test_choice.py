"""Which kernel runs a group: named, the only one, or the fastest by a timing cache."""

from __future__ import annotations

import logging

import attrs
import numpy as np
import pytest
from tests.core.builder.networks import chain, image_network
from tests.core.builder.rival_kernels import TYPES, acme_config, brisk, compiled, doctored, install, packed, toilsome

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.timing_cache import TimingCache
from dryfit.builder.kernels.choice import kernels_for
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.errors import BuildError, ConfigError, PluginError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.movement import Identity
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.formats import TensorFormat
from dryfit.target.kernels import FusedKinds, Kernel, kernel


@pytest.fixture(autouse=True)
def acme(monkeypatch):
    """The stranger's device with its two rivals."""
    install(monkeypatch)


def kernels(network, config):
    """Engine layer to kernel."""
    return {one.name: one.kernel for one in Builder().build_plan(network, config).operations}


def reasons(network, config, caplog):
    """Engine layer to what the build log says of its kernel."""
    with caplog.at_level(logging.INFO, "dryfit.builder"):
        Builder().build_plan(network, config)
    told = [record.getMessage() for record in caplog.records]
    return {text.partition(": ")[0]: text.rpartition(", ")[2] for text in told if " on ACME_FAST" in text}


# Times ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fastest", ["acme.brisk", "acme.toilsome"])
def test_the_kernel_that_the_timing_cache_calls_fastest_is_taken(fastest, caplog):
    network, times = chain("r"), {"acme.brisk": 30.0, "acme.toilsome": 30.0, fastest: 20.0}
    config = acme_config(doctored(network, ["r0"], times))
    assert kernels(network, config) == {"r0": fastest}
    other = ({*times} - {fastest}).pop()
    assert reasons(network, config, caplog) == {"r0": f"chosen by measurement (1.5x faster than {other})"}


def test_one_cache_gives_the_same_bytes_of_an_engine_and_another_the_other_kernel():
    network = chain("r")
    caches = [doctored(network, ["r0"], {"acme.brisk": one, "acme.toilsome": 2.0}) for one in (1.0, 1.0, 3.0)]
    first, second, third = (Builder().build_serialized_network(network, acme_config(cache)) for cache in caches)
    assert first == second
    assert Engine.load(third).plan.operations[0].kernel == "acme.toilsome"


def test_what_the_cache_lacks_is_measured_and_added_to_it():
    network, cache = chain("r"), TimingCache()
    assert kernels(network, acme_config(cache))["r0"] in ("acme.brisk", "acme.toilsome")
    assert [key.kernel for key in cache.query_keys()] == ["acme.brisk", "acme.toilsome"]
    assert cache.query_keys()[0].group == "activation(%0; activation_type=RELU) FLOAT[1, 8, 6, 6] -> FLOAT[1, 8, 6, 6]"


def test_equal_groups_are_measured_once():
    cache = TimingCache()
    Builder().build_plan(chain("r", "r", "r"), acme_config(cache))
    assert len(cache.query_keys()) == 2


def test_equal_times_leave_the_choice_to_the_names():
    network = chain("r")
    cache = doctored(network, ["r0"], {"acme.toilsome": 1.0, "acme.brisk": 1.0})
    assert kernels(network, acme_config(cache)) == {"r0": "acme.brisk"}


def test_what_was_measured_of_another_version_does_not_count(monkeypatch):
    install(monkeypatch, brisk, attrs.evolve(toilsome, version=2))
    network = chain("r")
    cache = doctored(network, ["r0"], {"acme.brisk": 2.0, "acme.toilsome": 1.0})
    Builder().build_plan(network, acme_config(cache))
    assert {(key.kernel, key.version) for key in cache.query_keys()} >= {("acme.toilsome", 1), ("acme.toilsome", 2)}


def test_dynamic_shapes_are_measured_at_the_optimum_of_the_profile():
    network, x = image_network((-1, 8, 6, 6))
    network.mark_output(network.add_activation(x, ActivationType.RELU).get_output(0))
    cache = TimingCache()
    config = acme_config(cache)
    profile = Builder().create_optimization_profile()
    profile.set_shape("x", (1, 8, 6, 6), (5, 8, 6, 6), (9, 8, 6, 6))
    config.add_optimization_profile(profile)
    Builder().build_plan(network, config)
    assert {key.group for key in cache.query_keys()} == {
        "activation(%0; activation_type=RELU) FLOAT[5, 8, 6, 6] -> FLOAT[5, 8, 6, 6]"
    }


def test_groups_whose_shapes_depend_on_data_are_not_measured(caplog):
    network, x = image_network((4,))
    rows = network.add_non_zero(x).get_output(0)
    floats = network.add_cast(rows, DataType.FLOAT).get_output(0)
    network.mark_output(network.add_activation(floats, ActivationType.RELU).get_output(0))
    cache = TimingCache()
    assert "acme.brisk" in kernels(network, acme_config(cache)).values()
    assert not cache.query_keys()


def test_optimization_level_0_measures_nothing_and_takes_the_first_by_name(caplog):
    network, cache = chain("r"), TimingCache()
    doctored_cache = doctored(network, ["r0"], {"acme.brisk": 2.0, "acme.toilsome": 1.0})
    for one in (cache, doctored_cache):
        config = acme_config(one)
        config.builder_optimization_level = 0
        assert kernels(network, config) == {"r0": "acme.brisk"}
    assert not cache.query_keys()
    assert reasons(network, config, caplog) == {"r0": "because kernels are not measured"}


def test_disabling_the_timing_cache_measures_without_keeping_anything():
    network, cache = chain("r"), TimingCache()
    config = acme_config(cache)
    config.set_flag(BuilderFlag.DISABLE_TIMING_CACHE)
    plan = Builder().build_plan(network, config)
    assert plan.operations[0].kernel in ("acme.brisk", "acme.toilsome")
    assert not cache.query_keys()
    assert not [text for text in plan.warnings if "DISABLE_TIMING_CACHE" in text]


def test_a_miss_is_an_error_where_the_flag_makes_it_one():
    network = chain("r")
    config = acme_config(doctored(network, ["r0"], {"acme.brisk": 2.0}))
    config.set_flag(BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
    with pytest.raises(BuildError, match=r"layer 'r0'.*acme\.toilsome, version 1, for activation"):
        Builder().build_plan(network, config)


def test_a_cache_of_another_processor_is_refused_unless_the_mismatch_is_ignored():
    config, foreign = acme_config(), TimingCache("some other processor")
    with pytest.raises(ConfigError, match="some other processor"):
        config.set_timing_cache(foreign)
    assert config.get_timing_cache() is not foreign
    assert config.set_timing_cache(foreign, ignore_mismatch=True)
    assert config.get_timing_cache() is foreign
    with pytest.raises(ConfigError, match="bytes"):
        config.set_timing_cache(foreign.serialize())


# Order ----------------------------------------------------------------------------------------------------------------


def test_a_higher_priority_wins_whatever_the_times(monkeypatch, caplog):
    install(monkeypatch, brisk, attrs.evolve(toilsome, priority=1))
    network, cache = chain("r"), TimingCache()
    assert kernels(network, acme_config(cache)) == {"r0": "acme.toilsome"}
    assert not cache.query_keys()
    assert reasons(network, acme_config(cache), caplog) == {"r0": "the only one of the highest priority"}


def test_a_devices_own_kernel_comes_before_the_hosts_whatever_the_priority(monkeypatch):
    install(monkeypatch, attrs.evolve(brisk, priority=-5000))
    assert kernels(chain("r"), acme_config()) == {"r0": "acme.brisk"}
    own, *hosts = kernels_for("ACME_FAST")
    assert own.name == "acme.brisk"
    assert [one.name for one in hosts] == [one.name for one in kernels_for("CPU")]
    assert hosts[-1].name == "cpu.reference"


def test_a_group_takes_what_any_candidate_takes_and_the_others_are_out(monkeypatch):
    pair = attrs.evolve(toilsome, fuses=FusedKinds({"activation"}), accepts=lambda group, specs: len(group.layers) < 3)
    install(monkeypatch, brisk, pair)
    network = chain("r", "r", "r")
    config = acme_config(doctored(network, ["r2"], {"acme.brisk": 1.0, "acme.toilsome": 2.0}))
    assert kernels(network, config) == {"r0 + r1": "acme.toilsome", "r2": "acme.brisk"}


def test_a_kernel_whose_format_is_not_defined_for_a_shape_is_none_for_it(monkeypatch):
    gray = TensorFormat("GRAY", [DataType.FLOAT], channel_counts=(1,))
    install(monkeypatch, attrs.evolve(brisk, formats={"input": gray}, priority=9), toilsome)
    assert kernels(chain("r"), acme_config()) == {"r0": "acme.toilsome"}
    assert kernels(chain("r", shape=(1, 1, 4, 4)), acme_config()) == {"r0": "acme.brisk"}


def test_a_device_may_list_a_kernel_of_the_host_as_its_own(monkeypatch):
    host = next(one for one in registry.host().kernels if one.name == "cpu.pointwise")
    install(monkeypatch, host)
    assert [one.name for one in kernels_for("ACME_FAST")].count("cpu.pointwise") == 1
    assert kernels(chain("r"), acme_config()) == {"r0": "cpu.pointwise"}


@pytest.mark.parametrize("question", ["accepts", "fuses"])
def test_a_kernel_that_fails_when_it_is_asked_is_named_and_another_can_be(question, monkeypatch):
    def fail(group, other):
        raise KeyError("no such table")

    install(monkeypatch, attrs.evolve(brisk, **{question: fail}))
    network, config = chain("r", "r"), acme_config()
    with pytest.raises(PluginError, match=r"kernel 'acme\.brisk', layer 'r0.*KeyError: 'no such table'"):
        Builder().build_plan(network, config)
    for layer in network.layers:
        config.set_kernel(layer, "cpu.pointwise")
    assert kernels(network, config) == {"r0": "cpu.pointwise", "r1": "cpu.pointwise"}


# Names ----------------------------------------------------------------------------------------------------------------


def test_a_kernel_that_the_user_names_runs_the_layer(caplog):
    network = chain("r")
    config = acme_config(doctored(network, ["r0"], {"acme.brisk": 1.0, "acme.toilsome": 9.0}))
    config.set_kernel(network.layer("r0"), "acme.toilsome")
    assert kernels(network, config) == {"r0": "acme.toilsome"}
    assert reasons(network, config, caplog) == {"r0": "set by the user"}
    assert config.get_kernel(network.layer("r0")) == "acme.toilsome"
    assert config.settings(network)["kernels"] == {"r0": "acme.toilsome"}
    config.reset_kernel(network.layer("r0"))
    assert config.get_kernel(network.layer("r0")) is None
    assert kernels(network, config) == {"r0": "acme.brisk"}


def test_the_hosts_kernels_can_be_named_too():
    network, config = chain("r"), acme_config()
    config.set_kernel(network.layer("r0"), "cpu.reference")
    assert kernels(network, config) == {"r0": "cpu.reference"}


def test_a_layer_with_a_named_kernel_begins_a_group_of_its_own():
    network, config = chain("c", "r", "r"), acme_config()
    assert "c0 + r1" in kernels(network, config)
    config.set_kernel(network.layer("r1"), "acme.toilsome")
    assert kernels(network, config)["r1"] == "acme.toilsome"


def test_an_unknown_kernel_is_named_with_the_closest_that_there_is():
    network, config = chain("r"), acme_config()
    config.set_kernel(network.layer("r0"), "acme.brisc")
    with pytest.raises(UnknownNameError, match=r"layer 'r0'.*kernel of ACME_FAST: 'acme\.brisc'.*'acme\.brisk'"):
        Builder().build_plan(network, config)


def test_a_named_kernel_that_cannot_run_the_layer_is_an_error_that_says_why_and_which_can():
    network, config = chain("r"), acme_config()
    config.set_kernel(network.layer("r0"), "cpu.softmax")
    with pytest.raises(BuildError) as caught:
        Builder().build_plan(network, config)
    assert "it supports softmax, not activation" in str(caught.value)
    assert caught.value.allowed == "acme.brisk, acme.toilsome, cpu.pointwise, cpu.reference"


def test_why_a_named_kernel_cannot_run_may_be_types_or_formats_or_its_own_reasons(monkeypatch):
    gray = TensorFormat("GRAY", [DataType.FLOAT], channel_counts=(1,))
    halves = attrs.evolve(brisk, name="acme.halves", data_types={DataType.HALF})
    grays = attrs.evolve(brisk, name="acme.grays", formats={"output": gray})
    picky = attrs.evolve(brisk, name="acme.picky", accepts=lambda group, specs: False)
    install(monkeypatch, halves, grays, picky)
    for name, reason in (
        ("acme.halves", "it supports FP16, not FP32"),
        ("acme.grays", "its output format GRAY is not defined for 'r0' of shape"),
        ("acme.picky", "it does not support the layer's parameters or shapes"),
    ):
        network, config = chain("r"), acme_config()
        config.set_kernel(network.layer("r0"), name)
        with pytest.raises(BuildError, match=reason):
            Builder().build_plan(network, config)


def test_a_named_kernel_without_effect_is_a_warning():
    network, x = image_network()
    identity = network.add_identity(x)
    network.rename_layer(identity, "gone")
    network.mark_output(network.add_activation(identity.get_output(0), ActivationType.RELU).get_output(0))
    config = acme_config()
    config.set_kernel(network.layer("gone"), "cpu.reference")
    warnings = Builder().build_plan(network, config).warnings
    assert any("The kernel cpu.reference set for layer 'gone' has no effect" in one for one in warnings)


def test_only_layers_of_a_network_have_kernels_named_and_only_by_text():
    config = acme_config()
    with pytest.raises(ConfigError, match="A kernel name must be a string"):
        config.set_kernel(chain("r").layer("r0"), brisk)
    with pytest.raises(ConfigError, match="The layer must belong to a network"):
        config.set_kernel(Identity(), "acme.brisk")


# Strangers' kernels ---------------------------------------------------------------------------------------------------


@kernel("acme.flat", kinds="softmax", data_types=TYPES)
def flat_softmax(binding):
    """Softmax over the axis 1, in numpy."""
    (x,), (y,) = binding.inputs, binding.outputs

    def run():
        shifted = np.exp(x - x.max(axis=1, keepdims=True))
        np.divide(shifted, shifted.sum(axis=1, keepdims=True), out=y)

    return run


def run_engine(network, config, x):
    engine = Engine.load(Builder().build_serialized_network(network, config))
    return engine.create_execution_context(1).run(x)


@pytest.mark.parametrize("rival", [brisk, toilsome, compiled, packed])
def test_a_strangers_numpy_or_numba_function_computes_its_layer(rival: Kernel, monkeypatch):
    install(monkeypatch, rival)
    network, config = chain("r"), acme_config()
    assert kernels(network, config) == {"r0": rival.name}
    x = np.random.default_rng(0).standard_normal((1, 8, 6, 6)).astype(np.float32)
    np.testing.assert_array_equal(run_engine(network, config, x)["r0"], np.maximum(x, 0))


def test_a_kernel_that_compiles_itself_is_measured_against_one_that_does_not(monkeypatch):
    install(monkeypatch, brisk, compiled)
    cache = TimingCache()
    Builder().build_plan(chain("r"), acme_config(cache))
    assert {key.kernel for key in cache.query_keys()} == {"acme.brisk", "acme.compiled"}


def test_a_strangers_softmax_is_taken_before_the_hosts(monkeypatch):
    install(monkeypatch, flat_softmax)
    network, x = image_network((1, 5))
    softmax = network.add_softmax(x)
    softmax.axes = 2
    network.mark_output(softmax.get_output(0))
    array = np.random.default_rng(1).standard_normal((1, 5)).astype(np.float32)
    (found,) = run_engine(network, acme_config(), array).values()
    exponents = np.exp(array.astype(np.float64))
    np.testing.assert_allclose(found, exponents / exponents.sum(), rtol=1e-6)
    assert list(kernels(network, acme_config()).values()) == ["acme.flat"]


def test_a_kernel_with_the_name_of_another_is_refused_with_its_target(monkeypatch):
    install(monkeypatch, attrs.evolve(brisk, name="cpu.pointwise"))
    with pytest.raises(PluginError, match=r"target ACME\w*, kernels_at: Kernel names must be unique.*cpu\.pointwise"):
        Builder().build_plan(chain("r"), acme_config())


# Forbidden kernels ----------------------------------------------------------------------------------------------------


def winograd_network():
    """One convolution that can be computed in Winograd's tiles, and the config of a build for the CPU."""
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 16, 16, 16))
    layer = network.add_convolution_nd(x, 32, (3, 3), np.ones((32, 16, 3, 3), np.float32))
    layer.pre_padding = layer.post_padding = (1, 1)
    network.rename_layer(layer, "c0")
    network.mark_output(layer.get_output(0))
    config = BuilderConfig()
    config.default_device_type = "CPU"
    times = {"cpu.convolution": 30.0, "cpu.winograd_2": 20.0, "cpu.winograd_4": 10.0}
    config.set_timing_cache(doctored(network, ["c0"], times, layout="channels_last"))
    config.set_flag(BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
    return network, config


def test_convolutions_of_the_cpu_are_rivals_and_without_measuring_the_direct_one_is_taken():
    network, config = winograd_network()
    assert kernels(network, config) == {"c0": "cpu.winograd_4"}
    config.builder_optimization_level = 0
    assert kernels(network, config) == {"c0": "cpu.convolution"}


def test_kernels_that_are_not_measured_may_have_an_order():
    network, config = winograd_network()
    config.ranks_unmeasured_kernels = True
    assert kernels(network, config) == {"c0": "cpu.winograd_4"}
    config.builder_optimization_level = 0
    assert kernels(network, config) == {"c0": "cpu.winograd_2"}
    config.set_flag(BuilderFlag.STRICT_NANS)
    assert kernels(network, config) == {"c0": "cpu.convolution"}


def test_a_forbidden_kernel_is_not_chosen_and_patterns_add_up():
    network, config = winograd_network()
    config.forbid_kernels("cpu.*_4")
    assert kernels(network, config) == {"c0": "cpu.winograd_2"}
    config.forbid_kernels("cpu.winograd_2")
    assert kernels(network, config) == {"c0": "cpu.convolution"}
    assert config.settings()["forbidden_kernels"] == ["cpu.*_4", "cpu.winograd_2"]
    config.reset_forbidden_kernels()
    assert kernels(network, config) == {"c0": "cpu.winograd_4"}


def test_strict_nans_take_no_kernel_that_spreads_them():
    network, config = winograd_network()
    config.set_flag(BuilderFlag.STRICT_NANS)
    assert kernels(network, config) == {"c0": "cpu.convolution"}


def test_a_kernel_that_is_named_runs_though_it_is_forbidden():
    network, config = winograd_network()
    config.forbid_kernels("cpu.winograd_*")
    config.set_kernel(network.layer("c0"), "cpu.winograd_2")
    assert kernels(network, config) == {"c0": "cpu.winograd_2"}


def test_forbidding_every_kernel_of_a_layer_is_an_error_that_names_the_patterns():
    network, config = winograd_network()
    config.forbid_kernels("cpu.*")
    with pytest.raises(BuildError, match="No kernel supports this convolution layer on CPU") as caught:
        kernels(network, config)
    assert "'cpu.*'" in str(caught.value)


def test_a_pattern_that_forbids_nothing_is_told(caplog):
    network, config = winograd_network()
    config.forbid_kernels("cpu.vinograd_*")
    with caplog.at_level(logging.WARNING):
        kernels(network, config)
    assert "No kernel of this build's devices matches 'cpu.vinograd_*'" in caplog.text


@pytest.mark.parametrize("pattern", ["", None, 3])
def test_a_pattern_that_is_no_text_is_refused(pattern):
    with pytest.raises(ConfigError, match="A kernel pattern must be a string"):
        BuilderConfig().forbid_kernels(pattern)
