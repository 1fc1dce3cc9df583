"""Engines whose files are sound and whose contents lie to native kernels: nothing is read that is not theirs."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
import pytest
from tests.integration.engines_of_models import build

from dryfit.engine.engine import Engine
from dryfit.engine.plan import Plan
from dryfit.errors import DryfitError, EngineFileError
from dryfit.plugins import registry
from dryfit.target.kernels import HostLayout

LIES = {
    "empty": lambda array: array[:0],
    "half as long": lambda array: array.reshape(-1)[: array.size // 2],
    "one element short": lambda array: array.reshape(-1)[:-1],
    "one element": lambda array: array.reshape(-1)[:1].reshape(()),
    "half precision": lambda array: array.astype(np.float16),
    "double precision": lambda array: array.astype(np.float64),
    "bytes": lambda array: array.astype(np.int8),
}


@pytest.fixture(scope="module", params=["digits", "mnist_denoise_deconv_in_fp32.onnx", "mnist_vit_fp32.onnx"])
def plan(request, digits_model) -> Plan:
    if request.param == "digits":
        return build(digits_model).plan
    return build(request.getfixturevalue("shared_models") / request.param).plan


def run(plan: Plan) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    inputs = {
        tensor.name: rng.random([max(extent, 1) for extent in tensor.shape]).astype(tensor.dtype.numpy)
        for tensor in plan.network.inputs
    }
    return Engine(plan).create_execution_context(2).run(inputs)


def with_operation(plan: Plan, index: int, **changes: object) -> Plan:
    operations = list(plan.operations)
    operations[index] = attrs.evolve(operations[index], **changes)
    return attrs.evolve(plan, operations=operations)


def packed_arrays(plan: Plan) -> Iterator[tuple[int, str]]:
    """One operation of each kernel that packs, and each of its arrays."""
    seen = set()
    for index, operation in enumerate(plan.operations):
        if operation.weights and operation.kernel not in seen:
            seen.add(operation.kernel)
            yield from ((index, name) for name in operation.weights)


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_packed_weights_that_are_not_the_kernels_are_refused(plan, lie):
    for index, name in packed_arrays(plan):
        weights = plan.operations[index].weights
        with pytest.raises(EngineFileError, match=r"packed weights.*Build the engine again"):
            run(with_operation(plan, index, weights={**weights, name: lie(weights[name])}))


def test_weights_that_lie_otherwise_in_memory_are_saved_as_the_kernel_needs_them(plan):
    expected, changed = run(plan), plan
    for index, name in packed_arrays(plan):
        weights = changed.operations[index].weights
        strided = np.repeat(weights[name], 2, axis=-1)[..., ::2]
        changed = with_operation(changed, index, weights={**weights, name: strided})
    for name, array in run(Engine.load(Engine(changed).serialize()).plan).items():
        np.testing.assert_array_equal(array, expected[name])


def test_packed_weights_that_are_missing_are_refused_or_not_needed(plan):
    expected, refused = run(plan), 0
    for index, name in packed_arrays(plan):
        weights = {key: array for key, array in plan.operations[index].weights.items() if key != name}
        try:
            found = run(with_operation(plan, index, weights=weights))
        except EngineFileError:
            refused += 1
            continue
        for key, array in found.items():
            np.testing.assert_allclose(array, expected[key], rtol=1e-4, atol=1e-5)
    assert refused


def test_a_kernel_that_was_not_chosen_is_refused_or_computes_the_same(plan):
    expected = run(plan)
    kernels = [kernel.name for kernel in registry.host().kernels]
    seen = set()
    for index, operation in enumerate(plan.operations):
        for kernel in kernels:
            kinds = tuple(plan.network.layer(name).kind for name in operation.layers)
            if kernel == operation.kernel or (kinds, kernel) in seen:
                continue
            seen.add((kinds, kernel))
            try:
                found = run(with_operation(plan, index, kernel=kernel))
            except DryfitError:
                continue
            for name, array in found.items():
                np.testing.assert_allclose(array, expected[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("layout", list(HostLayout), ids=lambda layout: layout.name)
def test_any_host_layout_gives_the_same_answer(plan, layout):
    placements = {name: attrs.evolve(one, host_layout=layout) for name, one in plan.placements.items()}
    expected = run(plan)
    for name, array in run(attrs.evolve(plan, placements=placements)).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-5)
