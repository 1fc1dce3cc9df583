"""The examples of the guides do what the guides show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import guides


@pytest.mark.parametrize("page", guides.guide_pages(), ids=lambda page: page.stem)
def test_the_examples_of_a_guide_do_what_it_shows(page: Path) -> None:
    try:
        expected = guides.page_as_it_should_be(page)
    except RuntimeError as error:
        missing = re.search(r"No module named '(onnxruntime|ai_edge_litert)'", str(error))
        if missing is None:
            raise
        pytest.skip(f"{missing[1]} is not installed; it has no wheel for this Python")
    text = page.read_text(encoding="utf-8")
    assert guides.is_same_page(expected, text) or expected == text  # the second shows what differs


def test_an_example_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(6 * 7)\n```\n\n```text\n41\n```\n", encoding="utf-8")
    assert "\n42\n" in guides.page_as_it_should_be(page)


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ dryfit targets show TPU\n```\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="ended with 2"):
        guides.page_as_it_should_be(page)


def test_last_digits_and_sizes_of_engines_may_differ_between_processors_and_nothing_else() -> None:
    assert guides.is_same_page("a 0.0624279  b", "a 0.062428   b")
    assert guides.is_same_page("a 0.06245003", "a 0.06244997")
    assert guides.is_same_page("33.7 dB  121.7 dB", "33.8 dB  121.4 dB")
    assert guides.is_same_page("8 engine layers, 135.7 KiB", "8 engine layers, 121.7 KiB")
    assert not guides.is_same_page("8 engine layers, 135.7 KiB", "9 engine layers, 135.7 KiB")
    assert not guides.is_same_page("121.7 dB", "121.0 dB")
    assert not guides.is_same_page("33.7 dB", "33.9 dB")
    assert not guides.is_same_page("33.7 dB", "33.7 dB 1.0")
    assert not guides.is_same_page("33.7 dB", "33.75 dB")
    assert not guides.is_same_page("a 0.0624279  b", "a 0.0625279  b")
    assert not guides.is_same_page("3.4 MiB", "3.5 MiB")
