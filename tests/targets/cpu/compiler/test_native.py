"""Native functions and tiers: wrong arguments and names are refused before anything runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
