"""Engine files from strangers: they are refused or compute what they say, and read and write nothing outside."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.integration.forgeries.campaign import run_forgeries, write_sound_engines
from tests.integration.forgeries.forger import Forger

from dryfit.testing.guarded_memory import has_guard_pages

COUNT = int(os.environ.get("DRYFIT_FORGERIES", "300"))
"""How many are tried: a sample; `make thorough` tries 20,000."""
FIRST = int(os.environ.get("DRYFIT_FIRST_FORGERY", "0"))

pytestmark = pytest.mark.skipif(not has_guard_pages(), reason="the system cannot protect pages")


@pytest.fixture(scope="module")
def engines(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sound_engines")
    write_sound_engines(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("quantized winograd", "cpu.integer_depthwise_convolution"),
        ("convolution of 24 in groups", "cpu.grouped_convolution"),
        ("scalar gather", "cpu.picking"),
    ],
)
def test_a_kernel_that_would_not_take_a_group_is_refused_because_it_is_asked(engines, tmp_path, name, kernel):
    forger = Forger({path.stem: path.read_bytes() for path in engines.glob(f"{name}.forged")})
    number = forger.number_of(name, kernel)
    shutil.copy(engines / f"{name}.forged", tmp_path)
    assert run_forgeries(tmp_path, number, number + 1).outcomes == {"refused": 1}


@pytest.mark.parametrize(
    ("spoilt", "words"), [("beside", ("OUTSIDE", "SIGSEGV")), ("far", "SIGSEGV"), ("wrong", "WRONG")]
)
def test_what_a_kernel_does_outside_or_wrong_is_found(engines, tmp_path, spoilt, words):
    name, kernel = "gather", "cpu.picking"
    shutil.copy(engines / f"{name}.forged", tmp_path)
    number = Forger({name: (tmp_path / f"{name}.forged").read_bytes()}).number_of(name, kernel)
    assert run_forgeries(tmp_path, number, number + 1).outcomes == {"right": 1}
    (fault,) = run_forgeries(tmp_path, number, number + 1, spoilt).faults
    assert fault.number == number
    assert kernel in fault.recipe
    assert fault.outcome.startswith(words)


def test_a_forged_engine_is_refused_or_right_and_never_outside(engines):
    campaign = run_forgeries(engines, FIRST, FIRST + COUNT)
    told = "\n".join(f"{one.number}: {one.outcome}: {one.recipe}" for one in campaign.faults)
    assert not campaign.faults, f"{campaign.outcomes}\n{told}"
    assert sum(campaign.outcomes.values()) == COUNT
    assert campaign.outcomes["refused"]
    assert campaign.outcomes["right"]
