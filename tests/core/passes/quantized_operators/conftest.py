"""The quantize method `acme`, installed for each test."""

import pytest
from tests.core.passes.quantized_operators.method_package import CODE, ENTRIES


@pytest.fixture
def acme(install):
    """Install the package; returns the method's name."""
    install("acme", CODE, ENTRIES)
    return "acme"
