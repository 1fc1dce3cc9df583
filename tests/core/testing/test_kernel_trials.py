"""What kernels are tried with: their own kinds and types, layers within the limits; a reason where there is none."""

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.testing.acme_npu import LIMITS, MANUAL, PLACE, TARGET, relu
from tests.core.testing.kit_runner import kit_of

from dryfit.network.data_types import DataType
from dryfit.network.layer import LAYER_KINDS
from dryfit.plugins import registry
from dryfit.target.limits import LimitTable
from dryfit.testing.drawn_layers import DRAWN, draw_layer
from dryfit.testing.kernel_checks import TOLERANCES
from dryfit.testing.kernel_trials import KernelCase, Refusals, config_for_kind, draw_trial, kernel_cases
from dryfit.testing.trial_networks import KINDS

TYPES = (DataType.FLOAT, DataType.HALF)
few = settings(max_examples=25, derandomize=True, database=None, deadline=None, suppress_health_check=[*HealthCheck])


def test_own_kernels_are_tried_with_what_they_declare_and_the_rest_is_inherited():
    cases = list(kernel_cases(TARGET, tuple(TOLERANCES)))
    assert [str(one) for one in cases if one.kernel is relu] == [
        "acme.relu-activation-FLOAT",
        "acme.relu-activation-HALF",
    ]
    inherited = {(one.kind, one.dtype) for one in cases if one.kernel is None}
    assert inherited == {(kind, dtype) for kind in LIMITS.supported_kinds for dtype in TYPES}


def test_the_hosts_kernels_are_all_its_own():
    host = attrs.evolve(TARGET, segment_rules=attrs.evolve(TARGET.segment_rules, is_host=True))
    assert all(one.kernel is relu for one in kernel_cases(host, TYPES))


@pytest.mark.parametrize("kind", DRAWN)
def test_layers_of_every_kind_with_parameters_are_drawn(kind):
    assert kind in KINDS
    shapes = set()

    @few
    @given(st.data())
    def drawn(data):
        layer = draw_layer(data.draw, kind, DataType.HALF)
        if layer is not None:
            assert (layer.kind, layer.inputs[0].dtype) == (kind, DataType.HALF)
            shapes.add(layer.outputs[0].shape)

    drawn()
    assert len(shapes) > 5


def trials(target, case):
    """Trials that hypothesis draws for a case."""
    refusals, found = Refusals(), []
    config = config_for_kind(target, case, refusals)

    @few
    @given(st.data())
    def drawn(data):
        trial = draw_trial(data.draw, target, case, config, refusals)
        if trial is not None:
            found.append((trial, bool(config.can_run_on(trial.group.main, target.device))))

    drawn()
    return found


def test_a_trial_is_within_the_limits_and_runs_on_the_kernel_that_is_tried(install):
    target = install(TARGET)
    found = trials(target, KernelCase("convolution", DataType.FLOAT))
    assert found
    assert all(is_supported and max(trial.group.main.kernel_size_nd) <= 7 for trial, is_supported in found)
    assert {trial.group.main.num_groups for trial, _ in found} == {1}
    assert {trial.kernel.name for trial, _ in found} >= {"cpu.convolution"}
    assert len({one.is_spaced for trial, _ in found for one in trial.arrangements.values()}) == 2


def test_a_kernel_is_tried_with_the_layers_that_it_fuses():
    kernel = next(one for one in registry.host().kernels if one.name == "cpu.convolution")
    found = trials(registry.host(), KernelCase("convolution", DataType.FLOAT, kernel))
    assert {len(trial.group.layers) for trial, _ in found} == {1, 2, 3}


def test_a_kind_is_tried_with_a_version_that_has_it(install):
    config = config_for_kind(install(TARGET), KernelCase("softmax", DataType.FLOAT), Refusals())
    # From 2.0 on only the second platform has it.
    assert (config.platform("ACME_NPU").name, config.software("ACME_NPU")) == ("board-1", (1, 0))


def test_a_kind_that_nothing_supports_is_a_skip_with_the_verdict(install, monkeypatch):
    unsupported = LimitTable("ACME_NPU", LIMITS.rules, supported_kinds=frozenset(), source=MANUAL)
    monkeypatch.setattr(f"{PLACE}.NOTHING", unsupported, raising=False)
    kit = kit_of(install(attrs.evolve(TARGET, limits_at=f"{PLACE}:NOTHING")))
    with pytest.raises(pytest.skip.Exception, match=r"supports none of the kit's activation layers: .*cannot run on"):
        kit.test_a_kernel_computes_what_its_layers_mean(KernelCase("activation", DataType.FLOAT, relu))


def test_feeds_follow_from_the_seed_and_have_the_inputs_types(install):
    found = trials(install(TARGET), KernelCase("elementwise", DataType.HALF))
    for trial, _ in found:
        first, again = trial.feeds(), trial.feeds()
        assert all(first[name].tobytes() == again[name].tobytes() for name in first)
        assert {name: (one.shape, one.dtype) for name, one in first.items()} == {
            tensor.name: (tensor.shape, tensor.dtype.numpy) for tensor in trial.network.inputs
        }


def test_the_kinds_of_trials_exist():
    assert set(KINDS) <= set(LAYER_KINDS)
