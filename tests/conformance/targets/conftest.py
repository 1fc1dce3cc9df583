"""How much the kit does for a bundled target in `make test`; `make thorough` does all that its class says."""

import pytest

from dryfit.testing import own_process, target_kernels

FEW = 3
"""Layers that are drawn for each kernel. The kernels have tests of their own in `tests/targets`."""

FEW_DRAWS = 40
"""Draws after which a kernel that served none of the layers is given up: one in three serves quantized layers only."""


@pytest.fixture(autouse=True)
def few_layers_a_kernel_in_this_process(request, monkeypatch):
    """Forks of a process that holds all tests cost more than what they run; pytest-xdist names a test that crashes."""
    if request.cls is not None and not request.config.getoption("--thorough"):
        monkeypatch.setattr(request.cls, "examples", FEW)
        monkeypatch.setattr(target_kernels, "_HOPELESS", FEW_DRAWS)
        monkeypatch.setattr(own_process, "can_fork", lambda: False)
