"""How many layers the kit draws for each kernel of a bundled target."""

import pytest

FEW = 3
"""The kernels have tests of their own in `tests/targets`; `make thorough` draws as many as the kit's class says."""


@pytest.fixture(autouse=True)
def few_layers_a_kernel(request, monkeypatch):
    if request.cls is not None and not request.config.getoption("--thorough"):
        monkeypatch.setattr(request.cls, "examples", FEW)
