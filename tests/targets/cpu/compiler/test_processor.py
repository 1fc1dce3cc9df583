"""What LLVM says of the processor is kept, found again for the same processor only, and never trusted when damaged."""

from __future__ import annotations

import tempfile

import llvmlite.binding as llvm
import pytest

from dryfit.target.cache_folder import ENVIRONMENT_VARIABLE
from dryfit_cpu.compiler import tier
from dryfit_cpu.compiler.tier import FOLDER, Processor

X86 = """processor\t: {number}
vendor_id\t: GenuineIntel
model name\t: A processor
cpu MHz\t\t: {clock}
flags\t\t: fpu sse2 {more}

"""
ARM = "processor\t: {number}\nBogoMIPS\t: {clock}\nFeatures\t: fp asimd {more}\nCPU part\t: 0xd40\n\n"


def describe(text: str, clocks: tuple[str, ...] = ("2000.1", "1999.9"), more: str = "") -> str:
    return "".join(text.format(number=number, clock=clock, more=more) for number, clock in enumerate(clocks))


@pytest.fixture
def description(tmp_path, monkeypatch):
    """A file in the place of Linux's description of the processor, with an empty cache beside it."""
    path = tmp_path / "cpuinfo"
    path.write_text(describe(X86))
    monkeypatch.setattr(tier, "_DESCRIPTION", path)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "cache"))
    return path


def ask(monkeypatch, answer: str) -> str:
    """The name of the CPU that is found while LLVM answers this."""
    monkeypatch.setattr(tier, "_ask_llvm", lambda: Processor("22.1", "triple", answer, {"avx2": True, "fma": False}))
    return tier.this_processor.__wrapped__().cpu


def test_it_is_what_llvm_says():
    found = tier.this_processor()
    assert found.features == dict(llvm.get_host_cpu_features())
    assert (found.cpu, found.triple) == (llvm.get_host_cpu_name(), llvm.get_process_triple())
    assert found.llvm == ".".join(map(str, llvm.llvm_version_info))


def test_what_is_kept_comes_back_whole(description, monkeypatch):
    assert ask(monkeypatch, "first") == "first"
    kept = tier.this_processor.__wrapped__()
    assert kept == Processor("22.1", "triple", "first", {"avx2": True, "fma": False})
    assert str(kept) == "22.1 triple first +avx2,-fma"


@pytest.mark.parametrize("text", [X86, ARM])
def test_llvm_is_asked_once_for_a_processor_whatever_its_clock(description, monkeypatch, text):
    description.write_text(describe(text))
    assert ask(monkeypatch, "first") == "first"
    description.write_text(describe(text, ("1200.0", "800.5", "800.7")))
    assert ask(monkeypatch, "second") == "first"


@pytest.mark.parametrize("text", [X86, ARM])
def test_another_feature_makes_another_processor(description, monkeypatch, text):
    description.write_text(describe(text))
    assert ask(monkeypatch, "first") == "first"
    description.write_text(describe(text, more="dotprod"))
    assert ask(monkeypatch, "second") == "second"


def test_a_description_that_an_emulator_takes_from_its_host_does_not_name_the_processor(description, monkeypatch):
    monkeypatch.setattr(tier, "_arm_features", lambda: {"dotprod": True})
    assert ask(monkeypatch, "first") == "first"
    monkeypatch.setattr(tier, "_arm_features", lambda: {"dotprod": False})
    assert ask(monkeypatch, "second") == "second"


def test_another_llvm_is_asked_anew(description, monkeypatch):
    assert ask(monkeypatch, "first") == "first"
    monkeypatch.setattr(tier.importlib.metadata, "version", lambda _: "99")
    assert ask(monkeypatch, "second") == "second"


def test_a_damaged_answer_is_not_trusted(description, monkeypatch):
    assert ask(monkeypatch, "first") == "first"
    (path,) = (description.parent / "cache" / FOLDER).iterdir()
    path.write_bytes(path.read_bytes().replace(b"true", b"null"))
    assert ask(monkeypatch, "second") == "second"


@pytest.mark.parametrize("text", ["", "processor\t: 0\nmodel name\t: A processor\n"])
def test_without_a_description_of_features_llvm_is_asked_each_time(description, monkeypatch, text):
    description.write_text(text)
    assert [ask(monkeypatch, answer) for answer in ("first", "second")] == ["first", "second"]
    description.unlink()
    assert ask(monkeypatch, "third") == "third"


def test_a_cache_that_cannot_be_written_to_is_no_error(description, monkeypatch, tmp_path):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "/dev/null/cache")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # It is kept in a private folder among the temporary files.
    assert [ask(monkeypatch, answer) for answer in ("first", "second")] == ["first", "first"]
