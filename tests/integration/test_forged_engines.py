"""Engine files from strangers: they are refused or compute what they say, and read and write nothing outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.integration.forgeries.campaign import run_forgeries, write_sound_engines

from dryfit.testing.guard_pages import has_guard_pages

COUNT = int(os.environ.get("DRYFIT_FORGERIES", "800"))
"""How many are tried: a sample, or 20,000 in a night."""
FIRST = int(os.environ.get("DRYFIT_FIRST_FORGERY", "0"))
_PART = 100

pytestmark = pytest.mark.skipif(not has_guard_pages(), reason="the system cannot protect pages")


@pytest.fixture(scope="module")
def engines(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sound_engines")
    write_sound_engines(folder)
    return folder


def test_a_forged_engine_is_refused_or_right_and_never_outside(engines):
    campaign = run_forgeries(engines, FIRST, FIRST + COUNT)
    told = "\n".join(f"{one.number}: {one.outcome}: {one.recipe}" for one in campaign.faults)
    assert not campaign.faults, f"{campaign.outcomes}\n{told}"
    assert sum(campaign.outcomes.values()) == COUNT
    assert campaign.outcomes["refused"]
    assert campaign.outcomes["right"]
