"""Questions about PyTorch modules: exported by PyTorch itself, then answered as an ONNX model is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dryfit

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch onnxscript)")
pytest.importorskip("onnxscript", reason="torch.onnx.export needs onnxscript (pip install onnxscript)")

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # PyTorch's exporter uses what PyTorch deprecates
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def module() -> Any:
    """A convolution, its batch normalization and ReLU, and a classifier behind a global average."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 10),
    ).eval()


@pytest.fixture(scope="module")
def example() -> Any:
    return torch.linspace(-1, 1, 3 * 16 * 16).reshape(1, 3, 16, 16)


def test_a_module_is_checked_with_example_inputs(module: Any, example: Any) -> None:
    answer = dryfit.check(module, device="DLA", fallback="GPU", example_inputs=(example,))
    assert answer.model == "Sequential"
    first = answer.layers[0]
    assert (first.kind, first.device, first.verdicts["DLA"].supported) == ("convolution", "DLA", True)


def test_one_example_input_needs_no_tuple(module: Any, example: Any) -> None:
    one = dryfit.check(module, device="DLA", fallback="GPU", example_inputs=example)
    assert one.to_dict() == dryfit.check(module, device="DLA", fallback="GPU", example_inputs=(example,)).to_dict()


def test_an_exported_program_is_answered_as_its_module_is(module: Any, example: Any) -> None:
    program = torch.export.export(module, (example,))
    of_program = dryfit.check(program, device="DLA", fallback="GPU").to_dict()
    of_module = dryfit.check(module, device="DLA", fallback="GPU", example_inputs=(example,)).to_dict()
    assert [layer["kind"] for layer in of_program["layers"]] == [layer["kind"] for layer in of_module["layers"]]
    assert of_program["summary"] == of_module["summary"]


def test_a_module_without_example_inputs_is_refused(module: Any) -> None:
    with pytest.raises(dryfit.DryfitError, match="example_inputs") as refused:
        dryfit.check(module, device="DLA")
    assert "example_inputs=(tensor, ...)" in str(refused.value)


def test_example_inputs_beside_an_onnx_path_are_refused() -> None:
    with pytest.raises(dryfit.ConfigError, match="example_inputs"):
        dryfit.check("model.onnx", example_inputs=(np.zeros(3),))


def test_what_pytorch_cannot_export_is_refused_in_its_words(example: Any) -> None:
    class Unexportable(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise RuntimeError("this module computes nothing")

    with pytest.raises(dryfit.DryfitError, match="computes nothing"):
        dryfit.check(Unexportable(), device="DLA", example_inputs=(example,))
