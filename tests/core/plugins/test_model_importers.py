"""Model formats of installed packages: found by content and suffix, and told of where they are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dryfit
from dryfit.answers.asked import import_model
from dryfit.errors import PluginError
from dryfit.plugins import facade, registry
from dryfit.plugins import model_importers as model_importers_module
from dryfit.plugins.contributions import ImportedModel, ImportOptions, ModelImporter
from dryfit.plugins.discovery import IMPORTERS
from dryfit.plugins.model_importers import importer_of, model_importers

TEXT = """
from dryfit.network.network import Network
from dryfit.plugins.contributions import ImportedModel, ModelImporter

def read(source, options):
    return ImportedModel(Network(f"{source} {options.flags}"))

ACME = ModelImporter(
    name="acme", title="Acme", suffixes=(".acme",), recognises=lambda first: first.startswith(b"ACME"), read=read
)
"""


@pytest.fixture
def installed(install_package: Any) -> None:
    points = {IMPORTERS: {"acme": "acme_models:ACME", "other": "acme_models:ACME", "number": "acme_models:TEXT"}}
    install_package("acme", points, {"acme_models": f"{TEXT}\nTEXT = 3"})
    registry.begin_again(disabled="", selected="acme")


@pytest.mark.usefixtures("installed")
def test_a_package_brings_a_format_that_is_found_by_content_and_by_suffix(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"ACME model")
    assert importer_of(path).name == importer_of(tmp_path / "missing.ACME").name == "acme"
    assert import_model(path, ImportOptions(flags=3)).network.name == f"{path} 3"


@pytest.mark.usefixtures("installed")
def test_a_wrong_record_or_name_is_recorded_and_left_out() -> None:
    assert "acme" in model_importers()
    assert {"other", "number"}.isdisjoint(model_importers())
    told = {one.name: one.message for one in registry.failures()}
    assert "must have the name of its entry point (found 'acme'; allowed: 'other')" in told["other"]
    assert "must name a model importer (found int; allowed: a ModelImporter)" in told["number"]


def test_an_onnx_operator_in_the_group_of_formats_is_told_where_it_belongs(install_package: Any) -> None:
    install_package("acme", {IMPORTERS: {"com.acme::Swish": "acme_swish:SWISH"}}, {"acme_swish": "SWISH = 1"})
    registry.begin_again(disabled="", selected="acme")
    assert facade.onnx_operators("com.acme", "Swish") == []
    (failure,) = registry.failures()
    assert "An importer of an ONNX operator must be in the entry-point group dryfit.onnx_operators" in failure.message
    assert failure.remedy == "Rename the group in the package to dryfit.onnx_operators"


def test_a_format_that_is_switched_off_is_not_read() -> None:
    registry.begin_again(disabled="onnx,tflite")
    with pytest.raises(PluginError, match="is disabled"):
        importer_of(b"anything")


def test_a_record_checks_its_fields() -> None:
    with pytest.raises(PluginError, match="`read` of a ModelImporter is a function"):
        ModelImporter(name="a", title="A", suffixes=(), recognises=bool, read="module:read")  # type: ignore[arg-type]
    assert ImportedModel(None).implied_method == ""  # type: ignore[arg-type]


def test_a_question_looks_at_the_first_bytes_of_a_file_once(digits_model, monkeypatch):
    looked = []
    before = model_importers_module._first_bytes
    monkeypatch.setattr(model_importers_module, "_first_bytes", lambda source: looked.append(source) or before(source))
    dryfit.check(digits_model)
    assert len(looked) == 1
