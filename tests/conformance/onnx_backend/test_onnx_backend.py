"""ONNX's own backend suite: the operators in scope, one case a test, and the bar."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.backend.test.runner import Runner
from tests.conformance.onnx_backend.cases import (
    base_cases,
    compare,
    expanded_cases,
    light_models,
    node_cases,
    run_case,
    sampled_expansions,
)
from tests.conformance.onnx_backend.scope import BASE_CASES_OF_ONNX_1_23
from tests.conformance.onnx_backend.unsupported import ROUNDED_OTHERWISE, UNSUPPORTED, reason_for_skipping

from dryfit.errors import OnnxImportError
from dryfit.onnx.backend import DryfitBackend

LARGE_NETWORKS = frozenset({"light_vgg19", "light_bvlc_alexnet", "light_zfnet512", "light_densenet121"})
"""Their fully connected layers take up to a gigabyte; what else they have, the other light networks have too."""

POOLED_IN_PYTHON = frozenset({"test_averagepool_3d_default", "test_lppool_3d_default", "test_maxpool_3d_default"})
"""Cases whose expected values ONNX computes window by window, for three seconds each; the other cases of volumes are
small."""

_SAMPLED = sampled_expansions()
EXPANDED = [
    name if name in _SAMPLED else pytest.param(name, marks=pytest.mark.nightly, id=name) for name in expanded_cases()
]
LIGHT = [
    pytest.param(path, marks=[pytest.mark.nightly] if path.stem in LARGE_NETWORKS else [], id=path.stem)
    for path in light_models()
]


BASE = [pytest.param(name, marks=[pytest.mark.nightly] if name in POOLED_IN_PYTHON else []) for name in base_cases()]


@pytest.mark.parametrize("name", [*BASE, *EXPANDED])
def test_a_case_of_the_suite_passes(name: str) -> None:
    reason = reason_for_skipping(name)
    if reason is not None:
        pytest.skip(reason)
    run_case(node_cases()[name])


def test_nine_of_ten_cases_in_scope_pass() -> None:
    cases = base_cases()
    if onnx.__version__.startswith("1.23."):
        assert len(cases) == BASE_CASES_OF_ONNX_1_23
    supported = [name for name in cases if reason_for_skipping(name) is None]
    assert len(supported) >= 0.9 * len(cases)


@pytest.mark.parametrize("name", [name for name in base_cases() if reason_for_skipping(name) in UNSUPPORTED.values()])
def test_a_case_that_is_not_supported_is_refused_and_not_answered_wrongly(name: str) -> None:
    with pytest.raises(OnnxImportError):
        DryfitBackend.prepare(node_cases()[name].model)


def test_every_line_of_the_table_of_unsupported_cases_is_used() -> None:
    if not onnx.__version__.startswith("1.23."):
        pytest.skip(f"the table is for the cases of onnx 1.23, this is {onnx.__version__}")
    reasons = {reason_for_skipping(name) for name in node_cases()}
    assert reasons - {None} == {*UNSUPPORTED.values(), *ROUNDED_OTHERWISE.values()}


@pytest.mark.parametrize("path", LIGHT)
def test_a_light_network_gives_its_stored_outputs(path: Path) -> None:
    model = onnx.load(path)
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs: list[np.ndarray] = [
        Runner.generate_dummy_data(info, name=path.stem) for info in model.graph.input if info.name not in initializers
    ]
    stored = [path.with_name(f"{path.stem}_output_{index}.pb") for index in range(len(model.graph.output))]
    expected = [onnx.numpy_helper.to_array(onnx.load_tensor(file)) for file in stored]
    compare(expected, list(DryfitBackend.prepare(model).run(inputs)), rtol=1e-3, atol=1e-7)


def test_there_are_nine_light_networks() -> None:
    assert len(light_models()) == 9
