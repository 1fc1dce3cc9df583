"""Records from plain data that nobody vouches for."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.engine.records import RecordError, record_from_plain, record_to_plain


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


@attrs.frozen
class Inner:
    count: int
    colour: Colour


@attrs.frozen
class Outer:
    name: str
    items: Sequence[Inner]
    table: Mapping[str, tuple[int, ...]]
    pair: tuple[str, bool]
    anything: Any
    maybe: Inner | None = None
    share: float = 0.5


OUTER = Outer("a", (Inner(1, Colour.RED), Inner(2, Colour.BLUE)), {"k": (1, 2)}, ("x", True), {"free": [1.5, None]})
names = st.text(max_size=5)


def test_a_record_comes_back_from_json():
    assert record_from_plain(Outer, json.loads(json.dumps(record_to_plain(OUTER))), "outer") == OUTER


@given(
    st.builds(
        Outer,
        names,
        st.lists(st.builds(Inner, st.integers(), st.sampled_from(Colour)), max_size=3).map(tuple),
        st.dictionaries(names, st.lists(st.integers(), max_size=3).map(tuple), max_size=3),
        st.tuples(names, st.booleans()),
        st.none() | names,
        st.none() | st.builds(Inner, st.integers(), st.sampled_from(Colour)),
        st.floats(allow_nan=False),
    )
)
def test_every_record_comes_back(record):
    assert record_from_plain(Outer, record_to_plain(record), "outer") == record


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 7}, "outer.name: str expected, int found"),
        ({"items": "ab"}, "outer.items: list expected, str found"),
        ({"items": {"0": {}}}, "outer.items: list expected, dict found"),
        ({"items": [{"count": "1", "colour": "RED"}]}, "outer.items[0].count: int expected, str found"),
        ({"items": [{"count": True, "colour": "RED"}]}, "outer.items[0].count: int expected, bool found"),
        ({"items": [{"count": 1.0, "colour": "RED"}]}, "outer.items[0].count: int expected, float found"),
        ({"items": [{"count": 1, "colour": "r"}]}, "outer.items[0].colour: 'r' is not one of RED, BLUE"),
        ({"items": [{"count": 1}]}, "outer.items[0]: Inner without colour"),
        ({"items": [{"count": 1, "colour": "RED", "__class__": 0}]}, "outer.items[0]: Inner with __class__"),
        ({"table": []}, "outer.table: dict expected, list found"),
        ({"table": {"k": 1}}, "outer.table['k']: list expected, int found"),
        ({"pair": ["x"]}, "outer.pair: 2 items expected, 1 found"),
        ({"maybe": {"count": 1}}, "outer.maybe: Inner without colour"),
        ({"maybe": 0}, "outer.maybe: dict expected, int found"),
        ({"share": 1}, "outer.share: float expected, int found"),
        ({"share": None}, "outer.share: float expected, NoneType found"),
        ({"pair": ["x", 1]}, "outer.pair[1]: bool expected, int found"),
    ],
)
def test_what_is_no_such_record_is_refused_with_its_place(change, message):
    with pytest.raises(RecordError) as caught:
        record_from_plain(Outer, {**record_to_plain(OUTER), **change}, "outer")
    assert str(caught.value) == message
