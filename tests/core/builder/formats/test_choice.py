"""The choice of forms for one tensor, against every combination of forms and copies there is."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from dryfit.builder.formats.choice import choose_forms
from dryfit.builder.formats.forms import TensorForm
from dryfit.builder.formats.sides import FormatSide
from dryfit.network.data_types import DataType
from dryfit.target.formats import LINEAR, TensorFormat

HALF, INT8 = DataType.HALF, DataType.INT8
LAYOUTS = (LINEAR, *(TensorFormat(name) for name in ("A", "B", "C")))
COST = st.integers(0, 3)


ALLOWED = st.just("")


@st.composite
def sides(draw, forbids=ALLOWED):
    layouts = draw(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=4, unique=True))
    device, dtype = draw(st.sampled_from("GD")), draw(st.sampled_from([HALF, INT8]))
    return FormatSide(device, dtype, {one: draw(COST) for one in layouts}, forbids_copy=draw(forbids))


def sizes(seed):
    """Bytes of each form: of the memory, whatever the device."""
    return {
        (dtype, layout.name): (seed * (7 + 5 * number) + 3 * (dtype is HALF)) % 11 + 1
        for number, (dtype, layout) in enumerate(itertools.product((HALF, INT8), LAYOUTS))
    }


def memory(form):
    return form.dtype, form.layout.name


def every_total(giver, takers, size):
    """Bytes of every combination of what is given, what is copied, and what each takes."""
    known = {memory(form) for side in (giver, *takers) for form, _ in side.forms()}
    for given_form, cost in giver.forms():
        for number in range(len(known) + 1):
            for copies in itertools.combinations(sorted(known, key=str), number):
                there = {memory(given_form), *copies}
                options = [[inside for form, inside in taker.forms() if memory(form) in there] for taker in takers]
                if all(options):
                    yield cost + sum(map(min, options)) + sum(size[one] for one in copies)


def total(choice, size):
    return choice.converted_bytes + sum(size[memory(form)] for form in choice.copies)


@given(giver=sides(), takers=st.lists(sides(), max_size=3), seed=st.integers(1, 10))
@settings(max_examples=300, deadline=None)
def test_no_combination_of_forms_and_copies_moves_fewer_bytes(giver, takers, seed):
    size = sizes(seed)
    choice = choose_forms(giver, takers, lambda form: size[memory(form)])
    assert total(choice, size) == min(every_total(giver, takers, size))
    inside = [dict(taker.forms())[form] for taker, form in zip(takers, choice.taken, strict=True)]
    assert choice.converted_bytes == dict(giver.forms())[choice.produced] + sum(inside)
    there = {memory(choice.produced), *map(memory, choice.copies)}
    assert {memory(form) for form in choice.taken} <= there


@given(giver=sides(), takers=st.lists(sides(), max_size=4), seed=st.integers(1, 10))
@settings(max_examples=300, deadline=None)
def test_the_choice_is_never_worse_than_what_each_side_prefers_for_itself(giver, takers, seed):
    size = sizes(seed)
    preferred = [min(side.forms(), key=lambda pair: pair[1]) for side in (giver, *takers)]
    copies = {memory(form) for form, _ in preferred[1:]} - {memory(preferred[0][0])}
    own = sum(inside for _, inside in preferred) + sum(size[one] for one in copies)
    assert total(choose_forms(giver, takers, lambda form: size[memory(form)]), size) <= own


@given(
    giver=sides(st.sampled_from(["", "no"])),
    takers=st.lists(sides(st.sampled_from(["", "no"])), min_size=1, max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_a_forbidden_copy_is_made_only_where_there_is_no_way_around_it(giver, takers):
    choice = choose_forms(giver, takers, lambda form: 1)
    for taker, form in zip(takers, choice.taken, strict=True):
        if memory(form) != memory(choice.produced) and (giver.forbids_copy or taker.forbids_copy):
            least = min(
                sum(
                    not any(memory(one) == memory(produced) for one, _ in other.forms())
                    for other in takers
                    if giver.forbids_copy or other.forbids_copy
                )
                for produced, _ in giver.forms()
            )
            assert least > 0


def test_two_takers_do_with_one_copy_though_one_would_rather_have_its_own():
    giver = FormatSide("G", HALF, {LINEAR: 0})
    flexible = FormatSide("D", HALF, {LAYOUTS[1]: 0, LAYOUTS[2]: 0})
    strict = FormatSide("G", HALF, {LAYOUTS[1]: 0})
    size = {"A": 100, "B": 80}

    def bytes_of(form):
        return size[form.layout.name]

    assert [form.layout.name for form in choose_forms(giver, [flexible], bytes_of).copies] == ["B"]
    both = choose_forms(giver, [flexible, strict], bytes_of)
    assert [form.layout.name for form in both.copies] == ["A"]
    assert both.copies == [TensorForm("D", HALF, LAYOUTS[1])]
    assert [form.layout.name for form in both.taken] == ["A", "A"]


def test_each_segment_that_converts_inside_counts():
    giver = FormatSide("G", HALF, {LINEAR: 0})
    taker = FormatSide("D", HALF, {LINEAR: 6, LAYOUTS[1]: 0})
    assert choose_forms(giver, [taker], lambda form: 10).copies == []
    assert len(choose_forms(giver, [taker, taker], lambda form: 10).copies) == 1
