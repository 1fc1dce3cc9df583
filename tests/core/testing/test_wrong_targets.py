"""A target with one fault fails the test that is there for it, with a message that says what is wrong, and no other."""

import pytest
from hypothesis import Phase, settings
from tests.core.testing import wrong_integers, wrong_targets
from tests.core.testing.acme_npu import TARGET
from tests.core.testing.kit_runner import PROCESSES, every_test, failed_tests, failures, kit_of, small_kit_of


@pytest.fixture(autouse=True)
def unshrunk():
    """The kit looks for the smallest layer that a kernel fails with, which takes time and changes no verdict here."""
    settings.register_profile("unshrunk", phases=[Phase.generate])
    settings.load_profile("unshrunk")
    yield
    settings.load_profile("default")


def kit_with(wrong, monkeypatch, install):
    more = {"networks": 2, "examples": 12} if wrong in wrong_targets.KERNEL else {}
    return small_kit_of(install(wrong.target(monkeypatch)), **more)


CASES = {wrong_targets.INTEGER: "integer_case", wrong_targets.INTEGER_NETWORK: "integer_trial"}
FIRST = {wrong.test: wrong for wrong in reversed(wrong_targets.ALL)}
"""Test of the kit to the first of the faults that it has to find; `make thorough` tries all of them."""


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(wrong, marks=() if FIRST[wrong.test] is wrong else pytest.mark.nightly, id=wrong.fault)
        for wrong in wrong_targets.ALL
    ],
)
def test_a_fault_is_found_where_it_is(wrong, monkeypatch, install, tmp_path):
    kit = kit_with(wrong, monkeypatch, install)
    failed = failed_tests(kit, tmp_path, [wrong.test, *wrong.also], crashes=wrong.crashes)
    assert wrong.message in "\n".join(failed.get(wrong.test, [])), failed
    assert failed.keys() == {wrong.test, *wrong.also}, failed


@pytest.mark.nightly
@pytest.mark.parametrize("wrong", wrong_targets.ALL, ids=lambda wrong: wrong.fault)
def test_a_fault_is_found_nowhere_else(wrong, monkeypatch, install, tmp_path):
    names = [name for name in every_test() if name not in PROCESSES]
    failed = failed_tests(kit_with(wrong, monkeypatch, install), tmp_path, names, crashes=wrong.crashes)
    assert failed.keys() - set(wrong.perhaps) == {wrong.test, *wrong.also}, failed


@pytest.mark.parametrize("name", [name for name in every_test() if name not in PROCESSES])
def test_the_sound_target_passes(name, install, tmp_path):
    assert failures(small_kit_of(install(TARGET)), name, tmp_path) == []


def test_a_sound_target_is_built_alike_by_two_processes(install, tmp_path):
    install(TARGET, "tests.core.testing.acme_npu:TARGET")
    assert failures(kit_of(TARGET, networks=2), PROCESSES[0], tmp_path) == []


def test_weights_that_depend_on_the_order_of_hashing_fail(install, tmp_path):
    install(wrong_targets.HASHING, "tests.core.testing.wrong_targets:HASHING")
    found = failures(kit_of(wrong_targets.HASHING, networks=2), PROCESSES[0], tmp_path)
    assert any("another process builds another engine file" in message for message in found)


def test_a_target_that_another_process_does_not_find_fails(install, tmp_path):
    found = failures(kit_of(install(TARGET), networks=1), PROCESSES[0], tmp_path)
    assert "another process cannot build for ACME_NPU" in found[0]


def test_a_compiled_target_passes(monkeypatch, install, tmp_path):
    sound = wrong_targets.Wrong("none", "", "", wrong_targets.segments())
    kit = small_kit_of(install(sound.target(monkeypatch)))
    assert failures(kit, wrong_targets.SEGMENT, tmp_path) == []
    assert failures(kit, wrong_targets.ENGINE, tmp_path) == []


@pytest.mark.parametrize("name", CASES)
def test_a_sound_integer_target_passes(name, monkeypatch, install, tmp_path, pytestconfig):
    networks = 3 if pytestconfig.getoption("--thorough") else 1
    target = wrong_targets.integers(wrong_integers.exact, "none").target(monkeypatch)
    kit = small_kit_of(install(target), networks=networks)
    labels = [label for label, _ in kit.cases_for(CASES[name])]
    assert {"-".join(label.split("-")[:2]) for label in labels} == {"tflite-INT8", "tflite-INT16"}
    assert failures(kit, name, tmp_path) == []


def test_each_test_of_the_kit_finds_some_fault():
    found = {one for wrong in wrong_targets.ALL for one in (wrong.test, *wrong.also)}
    elsewhere = {
        # In test_target_conformance.py and here, each with several faults.
        *PROCESSES,
        "test_boundary_layers_belong_to_rules_with_limits",
        "test_a_layer_kind_is_supported_or_has_a_reason",
        "test_supported_layer_kinds_exist",
        "test_a_format_is_declared_whole",
        "test_only_precisions_have_an_arithmetic",
        "test_some_network_can_be_made_for_the_target",
        "test_the_memory_of_a_plan_adds_up",
        "test_a_device_that_computes_in_int8_says_whether_it_takes_quantized_models",
    }
    assert set(every_test()) - found - elsewhere == set()
