"""The members that attrs generates for a layer class, at its first use."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import cast

import attrs
import pytest

from dryfit.errors import NetworkError
from dryfit.network.layer import Inputs, Layer, define_layer
from dryfit.network.tensor import TensorSpec


@define_layer
class _Windowed(Layer):
    kind = layer_type = "windowed"
    width: int

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        return [self.required(inputs, 0)]


def _new_kind() -> type[_Windowed]:
    @define_layer
    class Strided(_Windowed):
        stride: int = 1

    return Strided


def _is_generated(cls: type[Layer]) -> bool:
    return inspect.isfunction(vars(cls)["__init__"])


def test_a_class_is_generated_when_its_first_layer_is_made_and_no_sooner() -> None:
    kind = _new_kind()
    assert not _is_generated(kind)
    layer = kind(width=3)
    assert _is_generated(kind)
    assert (layer.width, layer.stride) == (3, 1)


def test_the_fields_and_the_signature_of_a_class_without_layers_are_its_own() -> None:
    assert [field.name for field in attrs.fields(_new_kind())][-2:] == ["width", "stride"]
    assert [field.name for field in _new_kind().parameters()] == ["width", "stride"]
    assert list(inspect.signature(_new_kind()).parameters)[-2:] == ["width", "stride"]


def test_a_layer_that_was_made_without_its_constructor_checks_its_parameters() -> None:
    layer = cast("_Windowed", object.__new__(_new_kind()))
    with pytest.raises(NetworkError, match="`width` has the wrong type"):
        layer.width = "wide"  # type: ignore[assignment]


def test_threads_that_make_the_first_layer_of_a_class_at_once_all_get_one() -> None:
    for _ in range(20):
        kind, found, start = _new_kind(), [], threading.Barrier(4)

        def make(kind: type[_Windowed] = kind, found: list[int] = found, start: threading.Barrier = start) -> None:
            start.wait()
            found.append(kind(width=2, stride=5).stride)

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [5] * 4


def test_importing_all_kinds_generates_none_of_them() -> None:
    code = (
        "import inspect\nfrom dryfit.network.layer import LAYER_KINDS\nimport dryfit.network.layers\n"
        "print(len(LAYER_KINDS) > 40, [kind for kind, cls in LAYER_KINDS.items()"
        " if inspect.isfunction(vars(cls)['__init__'])])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True []"
