"""Native functions and tiers: wrong arguments and names are refused before anything runs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.errors import DryfitError, UnknownNameError
from dryfit_cpu import warm_up
from dryfit_cpu.compiler import machine, tier
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.descriptors import Elements, Extents, Lines

SOFTMAX = NativeFunction("reduction", "softmax")


def test_a_missing_and_an_unknown_argument_are_named():
    with pytest.raises(DryfitError) as caught:
        SOFTMAX.work(1, source=0, sauce=0).descriptor  # noqa: B018
    assert "reduction.softmax" in str(caught.value)
    assert "sauce" in str(caught.value.found)
    assert "output" in str(caught.value.found)


def test_a_descriptor_of_another_class_is_refused():
    shape = Extents(1, 1, 1, 1)
    with pytest.raises(DryfitError) as caught:
        SOFTMAX.work(1, source=Lines(0, 0, 0), output=Elements(0, 0, 0, 0, 0, 0), extents=shape).descriptor  # noqa: B018
    assert "source.step" in str(caught.value.found)
    assert "source.stride3" in str(caught.value.found)
    assert "output" not in str(caught.value.found)


def test_a_tuple_without_names_is_no_descriptor():
    elements = Elements(0, 0, 0, 0, 0, 0)
    with pytest.raises(DryfitError) as caught:
        SOFTMAX.work(1, source=elements, output=elements, extents=(1, 1, 1, 1)).descriptor  # noqa: B018
    assert "extents.axis3" in str(caught.value.found)


def test_code_that_calls_an_unknown_function_is_refused():
    with pytest.raises(DryfitError, match="system_of_doom"):
        machine.object_file("declare i32 @system_of_doom(i32)\ndefine i32 @f() {\n  ret i32 0\n}\n")


@pytest.mark.skipif(sys.platform != "linux", reason="LLVM links on other systems")
def test_no_native_function_needs_llvm_to_be_linked(monkeypatch):
    asked = []
    monkeypatch.setattr(machine, "load", lambda code, symbol: asked.append(symbol) or 1)
    for name in warm_up.native_names():
        module, _, function = name.partition(".")
        assert NativeFunction(module, function).address
        assert not asked, f"{name} cannot be linked by dryfit itself"


def test_the_best_tier_comes_first(monkeypatch):
    monkeypatch.delenv(tier.ENVIRONMENT_VARIABLE, raising=False)
    names = [name for one in tier.TIERS for names in one.required for name in names.split("|")]
    features = dict.fromkeys(names, True)
    monkeypatch.setattr(tier, "host_features", lambda: features)
    assert tier.current_tier.__wrapped__().name == "avx512-vnni"
    features["avx512vnni"] = False
    assert tier.current_tier.__wrapped__().name == "avx512"
    features["avx512vl"] = False
    assert tier.current_tier.__wrapped__().name == "avx2-vnni"
    features["avxvnni"] = False
    assert tier.current_tier.__wrapped__().name == "avx2"
    features["f16c"] = False
    assert tier.current_tier.__wrapped__().name == "generic"


X86_FEATURES = sorted(
    {name for one in tier.TIERS if not one.machines for names in one.required for name in names.split("|")}
)


def told(features: str) -> set[str]:
    """What LLVM is told that the processor has."""
    return {feature[1:] for feature in features.split(",") if feature.startswith("+")}


@given(hidden=st.sets(st.sampled_from(X86_FEATURES)))
def test_code_needs_nothing_that_a_virtual_machine_hides(hidden):
    features = {name: name not in hidden for name in X86_FEATURES}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(tier.ENVIRONMENT_VARIABLE, raising=False)
        patch.setattr(tier.platform, "machine", lambda: "x86_64")
        patch.setattr(tier, "host_features", lambda: features)
        patch.setattr(machine, "host_features", lambda: features)
        chosen = tier.current_tier.__wrapped__()
        patch.setattr(machine, "current_tier", lambda: chosen)
        cpu, named = machine.cpu_and_features()
    assert not told(named) & hidden
    if cpu == "x86-64-v3":
        assert not {"avx2", "fma", "f16c", *tier._LEVEL_3} & hidden
    elif cpu != "x86-64":
        # Whatever LLVM knows of the processor itself is taken back.
        assert hidden <= {feature[1:] for feature in named.split(",") if feature.startswith("-")}


DOTPROD, I8MM = 1 << 20, 1 << 13


@pytest.mark.parametrize(
    ("capabilities", "more", "expected"),
    [
        (DOTPROD, I8MM, ["neon-matrix", "neon-dot", "neon", "generic"]),
        (DOTPROD, ~I8MM, ["neon-dot", "neon", "generic"]),
        (~DOTPROD, I8MM, ["neon", "generic"]),
        (0, 0, ["neon", "generic"]),
    ],
)
def test_an_arm_processor_has_what_linux_lets_programs_use(capabilities, more, expected, monkeypatch):
    monkeypatch.setattr(tier.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(tier.sys, "platform", "linux")
    monkeypatch.setattr(tier, "_auxiliary_value", lambda entry: {16: capabilities, 26: more}[entry])
    monkeypatch.setattr(tier, "host_features", tier._arm_features)
    assert [one.name for one in tier.tiers_here()] == expected


@pytest.mark.parametrize(("controls", "best"), [("DotProd I8MM", "neon-matrix"), ("DotProd", "neon-dot"), ("", "neon")])
def test_macos_is_asked_for_each_feature(controls, best, monkeypatch):
    monkeypatch.setattr(tier.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(tier.sys, "platform", "darwin")
    monkeypatch.setattr(tier, "_system_control", lambda name: name.decode().split("_")[1] in controls.split())
    monkeypatch.setattr(tier, "host_features", tier._arm_features)
    assert tier.tiers_here()[0].name == best


def test_an_arm_system_that_says_nothing_gets_what_every_processor_has(monkeypatch):
    def fail(_entry):
        raise AttributeError("getauxval")

    monkeypatch.setattr(tier.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(tier, "_auxiliary_value", fail)
    monkeypatch.setattr(tier, "host_features", tier._arm_features)
    assert tier._arm_features() == {}
    assert tier.tiers_here()[0].name == "neon"


@pytest.mark.parametrize("one", [one for one in tier.TIERS if one.machines], ids=lambda one: one.name)
def test_code_for_arm_names_what_its_tier_requires_and_no_processor(one, monkeypatch):
    monkeypatch.setattr(tier.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(machine, "current_tier", lambda: one)
    cpu, features = machine.cpu_and_features()
    assert (cpu, told(features)) == ("generic", {"neon", *one.required})


def test_a_tier_that_the_machine_lacks_is_refused(monkeypatch):
    monkeypatch.setattr(tier, "host_features", dict)
    monkeypatch.setenv(tier.ENVIRONMENT_VARIABLE, "avx512")
    with pytest.raises(UnknownNameError) as caught:
        tier.current_tier.__wrapped__()
    assert caught.value.name == "avx512"
    assert caught.value.known == ["generic"]


def test_kernels_are_listed_without_numba_or_llvm():
    program = "import sys, dryfit_cpu.kernels; print({'numba', 'llvmlite'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
