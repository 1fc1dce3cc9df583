"""The kit finds a device that computes otherwise than its target declares, whoever is to blame for it."""

import attrs
import pytest
from tests.core.testing.acme_npu import TARGET
from tests.core.testing.kit_runner import failures, small_kit_of
from tests.core.testing.wrong_targets import DECLARES, USES

from dryfit.builder.precision import layer_precisions
from dryfit.network.data_types import DataType

HALF_ONLY = attrs.evolve(TARGET, precisions=[DataType.HALF], default_precision=DataType.HALF)


@pytest.mark.parametrize("name", [DECLARES, USES])
def test_a_device_with_a_default_precision_passes(name, install, tmp_path):
    assert failures(small_kit_of(install(HALF_ONLY)), name, tmp_path) == []


def test_a_builder_that_computes_in_the_type_of_the_network_is_found(install, monkeypatch, tmp_path):
    monkeypatch.setattr(layer_precisions._Chooser, "_not_widened", lambda self, own, asked, target: own)
    monkeypatch.setattr(layer_precisions, "_require_types_of_devices", lambda *arguments: None)
    kit = small_kit_of(install(HALF_ONLY))
    (types,) = failures(kit, DECLARES, tmp_path)
    assert "is computed in FP32, and the target declares FP16" in types
    (kernels,) = failures(kit, USES, tmp_path)
    assert "in FP32, though FP16 is requested and the target brings acme.relu" in kernels
