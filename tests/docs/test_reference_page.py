"""The generated reference of commands: no value of Python's or click's own stands in it."""

import re

import click
import pytest
from docs.pages.reference import command_line_page, option_row, python_page

LEAKS = re.compile(
    r"Sentinel|UNSET|<class|<function| object at 0x|functools|PosixPath|Default: (None|True|False|\(\)|\[\])"
)


@pytest.mark.parametrize("page", [command_line_page, python_page])
def test_no_inner_value_leaks_into_the_pages(page):
    assert not [line for line in page().splitlines() if LEAKS.search(line)]


def test_defaults_that_are_shown_are_those_of_the_options():
    page = command_line_page()
    assert "| `--device NAME` | Default device of the layers. Default: GPU; with --platform " in page
    assert "Default: entropy2." in page
    assert "Default: stretch." in page


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (click.Option(["--mean"], show_default=True), ""),
        (click.Option(["--mean"], default=None, show_default=True), ""),
        (click.Option(["--mean"], show_default=True, multiple=True), "May be given several times."),
        (click.Option(["--mean"], default="0", show_default=True), "Default: 0."),
        (click.Option(["--mean"], show_default="that of the file"), "Default: that of the file."),
        (click.Option(["--mean"], default="0"), ""),
    ],
)
def test_an_option_without_a_default_shows_none(option, told):
    assert option_row(option) == f"| `--mean TEXT` |  {told} |\n".replace("   |", "  |")
