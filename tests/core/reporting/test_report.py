"""`dryfit report`: one file that needs no other, whose numbers are those of the answers."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.schemas import validate

import dryfit
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.reporting.report import ReportAnswer

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")

SHAPE = {"image": (2, 1, 8, 8)}
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Links of a page, its anchors, and whether each element is closed where it has to be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [given[name] or "" for name in ("href", "src", "xlink:href") if name in given]
        self.anchors += [given["id"] or ""] if "id" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def digits() -> Any:
    return dryfit.report(
        "examples/digits/digits.onnx", platform=["agx-orin-64", "agx-xavier"], shape=SHAPE, edits=False
    )


@pytest.fixture(scope="module")
def page(digits: Any) -> str:
    text: str = digits.to_html()
    return text


def test_the_answer_is_as_its_schema_promises(digits: Any) -> None:
    validate(digits.to_dict(), ReportAnswer.schema())


def test_nothing_is_loaded_from_elsewhere_and_each_link_leads_somewhere(page: str) -> None:
    found = Page(page)
    assert found.open == []
    assert {link for link in found.links if not link.startswith("#")} == set()
    assert {link[1:] for link in found.links} <= set(found.anchors)
    assert len(set(found.anchors)) == len(found.anchors)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org/)", page)


def test_the_numbers_are_those_of_the_answers(digits: Any) -> None:
    check = dryfit.check("examples/digits/digits.onnx", platform="agx-orin-64", shape=SHAPE)
    cost = dryfit.estimate("examples/digits/digits.onnx", platform="agx-orin-64", shape=SHAPE)
    outcome = digits.parts[0]
    assert f"{check.summary.layers_by_device['DLA']} of {check.summary.layers} layers" in outcome.finding
    assert cost.network.latency_text in outcome.finding
    table = {row[0]: row for row in outcome.blocks[0].rows}
    for device, layers in check.summary.layers_by_device.items():
        macs = sum(one.macs for one in cost.segments if one.device == device)
        assert table[device][1:3] == (layers, f"{macs:,}")


def test_variants_have_the_answers_of_their_boards(digits: Any) -> None:
    for variant in digits.variants:
        alone = dryfit.check("examples/digits/digits.onnx", platform=variant.platform, shape=SHAPE)
        assert variant.check.to_json() == alone.to_json()


def test_what_cannot_be_asked_of_another_variant_is_told_there() -> None:
    found = dryfit.report("examples/digits/digits.onnx", platform="agx-orin-64", software=["10.3", "6.0"], edits=False)
    assert found.variants[1].check is None
    assert "6.0" in found.variants[1].error


def test_what_cannot_be_asked_at_all_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="agx-oryn"):
        dryfit.report("examples/digits/digits.onnx", platform="agx-oryn")


def test_names_are_text_and_not_markup(digits_model: Any) -> None:
    network = dryfit.network_from_onnx(digits_model)
    network.layers[3].name = "</script><img src=x onerror=alert(1)>"
    text = dryfit.report(network, platform="agx-orin-64", edits=False).to_html()
    assert "<img" not in text
    assert Page(text).open == []


def test_an_anonymous_report_has_no_name_of_the_model(digits_model: Any, tmp_path: Any) -> None:
    cache = tmp_path / "scales.cache"
    network = dryfit.network_from_onnx(digits_model)
    tensors = [*network.inputs, *(tensor for layer in network.layers for tensor in layer.outputs)]
    cache.write_text("TRT-8601-EntropyCalibration2\n" + "".join(f"{one.name}: 3c010a14\n" for one in tensors))
    options = {"platform": "agx-orin-64", "shape": SHAPE, "precision": "int8,fp16", "calibration_cache": cache}
    named, found = (dryfit.report(digits_model, anonymous=one, edits=False, **options) for one in (False, True))
    names = {tensor.name for tensor in tensors} | {one.name for one in network.layers} - {
        one.kind for one in network.layers
    }
    text = found.to_html()
    assert not {name for name in names if f">{name}<" in text or f"'{name}'" in text or f'"{name}"' in text}
    assert "scales.cache" not in text
    assert "digits.onnx" not in text
    for one, other in zip(named.facts.check.layers, found.facts.check.layers, strict=True):
        assert (one.kind, one.device, one.precision) == (other.kind, other.device, other.precision)


def test_an_anonymous_report_takes_no_option_that_names_layers(digits_model: Any) -> None:
    with pytest.raises(ConfigError, match="layer_device_types"):
        dryfit.report(digits_model, anonymous=True, layer_device_types="conv1:GPU")


def test_two_reports_have_the_same_bytes(page: str) -> None:
    again = dryfit.report(
        "examples/digits/digits.onnx", platform=["agx-orin-64", "agx-xavier"], shape=SHAPE, edits=False
    )
    assert again.to_html() == page
