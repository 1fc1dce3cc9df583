"""Limit tables as a stranger's target would write them."""

import pytest

from dryfit.errors import PluginError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.target.boundaries import BoundaryCase, boundary_cases
from dryfit.target.checks import (
    at_least,
    at_most,
    between,
    check,
    describe,
    each,
    equals,
    one_of,
    outside,
    parameter,
    platform_is,
    quantity,
    software_is_at_least,
    whole_between,
)
from dryfit.target.limits import Finding, LimitTable, Question, rule, rules


def pooling(window=(2, 2), kind=PoolingType.MAX):
    network = Network("net")
    layer = network.add_pooling_nd(network.add_input("x", DataType.FLOAT, (1, 8, 32, 32)), kind, window)
    layer.name = "pool1"
    return layer


def relu():
    network = Network("net")
    return network.add_activation(network.add_input("x", DataType.FLOAT, (1, 8, 32, 32)), ActivationType.RELU)


def ask(layer, *, precision=DataType.HALF, family="one", software=(2, 0), **others):
    return Question(layer, precision, "ACME", "acme-1", family, software, **others)


def table(*entries, kinds="pooling", **others):
    return LimitTable("ACME", rules(kinds, *entries), source="Acme guide", **others)


WINDOW = rule("pooling.window", each("window_size_nd", between(1, 8)), source="Acme guide, 3", remedy="Pool twice")


def test_a_violation_carries_value_limits_remedy_and_source():
    verdict = table(WINDOW).evaluate(ask(pooling((9, 3))))
    assert not verdict
    assert (verdict.layer, verdict.device, verdict.platform, verdict.software) == ("pool1", "ACME", "acme-1", "2.0")
    [found] = verdict.violations
    assert found.rule == "acme.pooling.window"
    assert found.parameter == "window_size_nd"
    assert found.actual == "(9, 3)"
    assert found.allowed == "each 1 to 8"
    assert (found.parameter, found.actual, found.allowed) == ("window_size_nd", "(9, 3)", "each 1 to 8")
    assert found.message == "window_size_nd must be 1 to 8 (found (9, 3))"
    assert (found.remedy, found.source, found.fidelity) == ("Pool twice", "Acme guide, 3", "documented")
    assert str(found) == f"{found.message} [acme.pooling.window]. Pool twice"
    assert str(verdict) == f"'pool1' cannot run on ACME: {found}"


def test_a_rule_that_fails_refuses_its_layer_with_the_failure_as_the_reason():
    misspelled = rule("pooling.broken", each("window_sice", between(1, 8)), source="Acme guide, 3")
    verdict = table(misspelled, WINDOW).evaluate(ask(pooling((9, 9))))
    broken, other = verdict.violations
    assert (broken.rule, other.rule) == ("acme.pooling.broken", "acme.pooling.window")
    assert "window_sice" in broken.actual
    assert "'window_size_nd'" in broken.actual
    assert f"{__file__}:" in broken.actual
    assert "Report it to the maintainers of the target ACME" in broken.remedy


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_a_function_that_fails_is_named_with_its_file_and_line(error):
    @check("the moon")
    def is_full(question):
        """The moon is full."""
        raise error

    [broken] = table(rule("moon", is_full, source="s")).evaluate(ask(pooling())).violations
    assert f"{error.__name__} ({__file__}:{is_full.function.__code__.co_firstlineno + 3})" in broken.message


def test_a_check_that_returns_something_else_refuses_its_layer():
    [broken] = (
        table(rule("moon", check("m", "t")(lambda question: False), source="s")).evaluate(ask(pooling())).violations
    )
    assert "not bool" in broken.actual


def test_a_warning_or_note_that_fails_refuses_nothing():
    broken = parameter("missing", at_most(4))
    warning = rule("a", broken, source="s", severity="warning")
    note = rule("b", broken, source="s", severity="note", promotes_to=DataType.FLOAT)
    verdict = table(warning, note).evaluate(ask(pooling()))
    assert verdict.supported
    assert [one.rule for one in verdict.warnings] == ["acme.a", "acme.b"]
    assert verdict.notes == ()
    assert verdict.precision is DataType.HALF


def test_a_condition_that_fails_refuses_the_layer():
    made = rule("a", parameter("pooling_type", one_of("MAX")), source="s", when=parameter("missing", at_most(4)))
    assert [one.rule for one in table(made).evaluate(ask(pooling())).violations] == ["acme.a"]


def test_a_layer_within_the_limits_is_supported():
    verdict = table(WINDOW).evaluate(ask(pooling((8, 1))))
    assert verdict.supported
    assert str(verdict) == "'pool1' can run on ACME"


def test_a_rule_speaks_of_its_kinds_only():
    assert table(WINDOW).evaluate(ask(relu())).supported


def test_the_device_is_put_before_an_id_once():
    made = table(WINDOW)
    again = LimitTable("ACME", made.rules)
    assert [one.id for one in again.rules] == ["acme.pooling.window"]


def test_all_rules_are_told_in_the_order_of_the_table():
    made = table(
        rule("b", parameter("pooling_type", one_of("MAX")), source="s"),
        rule("a", each("window_size_nd", at_most(4)), source="s"),
    )
    verdict = made.evaluate(ask(pooling((5, 5), PoolingType.AVERAGE)))
    assert [one.rule for one in verdict.violations] == ["acme.b", "acme.a"]
    assert verdict.violations[0].message == "pooling_type must be MAX (found AVERAGE)"


def test_a_warning_does_not_decide():
    verdict = table(rule("window", each("window_size_nd", at_most(4)), source="s", severity="warning")).evaluate(
        ask(pooling((5, 5)))
    )
    assert verdict.supported
    assert [one.rule for one in verdict.warnings] == ["acme.window"]


def test_a_note_is_no_warning_and_does_not_decide():
    verdict = table(rule("window", each("window_size_nd", at_most(4)), source="s", severity="note")).evaluate(
        ask(pooling((5, 5)))
    )
    assert verdict.supported
    assert verdict.warnings == ()
    assert [one.rule for one in verdict.notes] == ["acme.window"]


def test_an_unknown_severity_is_refused():
    with pytest.raises(PluginError, match="Unknown severity") as error:
        rule("window", each("window_size_nd", at_most(4)), source="s", severity="error")
    assert (error.value.found, error.value.allowed) == ("error", "violation, warning, note")


@pytest.mark.parametrize(
    ("software", "holds"),
    [((8, 4), True), ((8, 4, 1), True), ((10,), True), ((), True), ((8, 3), False), ((8,), False)],
)
def test_software_is_new_enough_or_refused_with_its_version(software, holds):
    verdict = table(rule("software", software_is_at_least("8.4"), source="s")).evaluate(
        ask(pooling(), software=software)
    )
    assert verdict.supported == holds
    version = ".".join(map(str, software))
    assert all(
        (one.parameter, one.actual, one.allowed) == ("software version", f"{version}", "8.4 or newer")
        and one.message == f"software version must be 8.4 or newer (found {version})"
        for one in verdict.violations
    )


@pytest.mark.parametrize(
    ("software", "speaks"),
    [
        ((1, 9), False),
        ((2,), True),
        ((2, 0), True),
        ((2, 1), True),
        ((3, 4), True),
        ((3, 4, 9), True),
        ((3, 5), False),
    ],
)
def test_a_rule_holds_from_its_first_to_its_last_version(software, speaks):
    made = table(rule("window", each("window_size_nd", at_most(4)), source="s", since="2.0", until="3.4"))
    assert made.evaluate(ask(pooling((5, 5)), software=software)).supported != speaks


def test_a_rule_holds_for_its_families_and_precisions():
    made = table(
        rule("window", each("window_size_nd", at_most(4)), source="s", families="one", precisions=[DataType.INT8])
    )
    layer = pooling((5, 5))
    assert not made.evaluate(ask(layer, precision=DataType.INT8))
    assert made.evaluate(ask(layer, precision=DataType.HALF))
    assert made.evaluate(ask(layer, precision=DataType.INT8, family="two"))
    assert made.rules[0].scope == "one; INT8"


def test_a_rule_may_have_conditions():
    made = table(
        rule(
            "window",
            each("window_size_nd", at_most(4)),
            when=parameter("pooling_type", equals("AVERAGE")),
            source="s",
        )
    )
    assert made.evaluate(ask(pooling((5, 5)))).supported
    assert not made.evaluate(ask(pooling((5, 5), PoolingType.AVERAGE))).supported
    assert made.rules[0].text == "where pooling_type is AVERAGE: window_size_nd must be at most 4"


@pytest.mark.parametrize(
    ("since", "until", "scope"),
    [(None, None, ""), ("8.4", None, "from 8.4"), (None, "8.4", "up to 8.4"), ("8.2", "8.4", "8.2 to 8.4")],
)
def test_the_versions_of_a_rule_are_told_in_words(since, until, scope):
    made = table(rule("window", each("window_size_nd", at_most(4)), source="s", since=since, until=until))
    assert made.rules[0].scope == scope


def test_a_function_may_be_a_check_and_its_docstring_the_text():
    @check("window")
    def is_square(question):
        """The window is square."""
        height, width = question.layer.window_size_nd
        return None if height == width else Finding(f"{height}x{width}", "square", remedy="Use a square window")

    made = table(rule("square", is_square, source="s", remedy="another"))
    assert made.rules[0].text == "the window is square"
    assert made.evaluate(ask(pooling((2, 2))))
    [found] = made.evaluate(ask(pooling((2, 3)))).violations
    assert (found.message, found.remedy) == ("window must be square (found 2x3)", "Use a square window")


def test_a_quantity_is_what_no_plain_parameter_is():
    @quantity("area")
    def area(question):
        height, width = question.layer.window_size_nd
        return height * width

    made = table(rule("area", parameter(area, at_most(16)), source="s"))
    assert made.evaluate(ask(pooling((4, 4))))
    assert made.evaluate(ask(pooling((4, 5)))).violations[0].message == "area must be at most 16 (found 20)"


def test_a_check_without_words_is_refused_when_the_table_is_made():
    with pytest.raises(PluginError, match="A rule must have `text` and `parameter`") as error:
        rule("mute", lambda question: None, source="s")
    assert error.value.where == "rule 'mute'"
    spoken = rule("spoken", lambda question: None, source="s", text="anything goes", parameter="anything")
    assert table(spoken).evaluate(ask(pooling()))


def test_two_rules_of_one_id_are_refused():
    with pytest.raises(PluginError, match="Two rules have one id") as error:
        table(WINDOW, WINDOW)
    assert error.value.found == "acme.pooling.window"


def test_a_kind_stands_in_one_list():
    with pytest.raises(PluginError, match="Two lists have a common layer kind"):
        table(WINDOW, supported_kinds=frozenset({"pooling"}), unsupported={"pooling": "never"})


def test_a_kind_that_the_table_does_not_have_fails_for_that_alone():
    made = table(
        WINDOW,
        supported_kinds=frozenset({"pooling", "convolution"}),
        unsupported={"activation": "no such unit"},
        unmodelled={"softmax": "perhaps"},
    )
    [found] = made.evaluate(ask(relu())).violations
    assert found.message == "activation layers are not supported on ACME: no such unit"
    assert (found.actual, found.allowed) == ("activation", "convolution, pooling")
    assert (found.rule, found.source) == ("acme.layer.kind", "Acme guide")
    network = Network("net")
    x = network.add_input("x", DataType.FLOAT, (1, 8, 4, 4))
    [found] = made.evaluate(ask(network.add_softmax(x))).violations
    assert (found.rule, found.fidelity) == ("acme.layer.unmodelled", "inferred")
    [found] = made.evaluate(ask(network.add_identity(x))).violations
    assert found.message == "identity layers are not supported on ACME: its documentation does not list them"
    assert made.rule("acme.layer.kind").parameter == "layer kind"


def test_a_table_that_models_every_kind_has_no_rule_on_the_others():
    made = table(WINDOW, supported_kinds=frozenset({"pooling"}))
    assert [one.id for one in made.kind_rules] == ["acme.layer.kind"]


def test_an_unknown_rule_names_the_closest():
    with pytest.raises(UnknownNameError, match="Unknown ACME rule") as error:
        table(WINDOW).rule("acme.pooling.windw")
    assert error.value.remedy == "Did you mean 'acme.pooling.window'?"


@pytest.mark.parametrize(
    ("constraint", "text", "passing", "failing"),
    [
        (between(1, 32), "1 to 32", [1, 32], [0, 33]),
        (at_most(4), "at most 4", [4], [5]),
        (at_least(2), "at least 2", [2], [1]),
        (whole_between(1, 4), "a whole number from 1 to 4", [1, 4], [0, 1.5, 5]),
        (outside(23, 32), "less than 23 or more than 32", [22, 33], [23, 32]),
        (one_of(3, 5, 7), "3, 5, 7", [3, 5, 7], [2, 4, 6, 8]),
        (equals(1), "1", [1], [0, 2]),
        (one_of("MAX", "AVERAGE"), "MAX, AVERAGE", ["MAX", "AVERAGE"], []),
        (equals(False), "False", [False], []),
    ],
)
def test_a_constraint_knows_its_words_and_both_sides(constraint, text, passing, failing):
    assert constraint.text == text
    assert list(constraint.passing) == passing
    assert list(constraint.failing) == failing
    assert all(constraint.holds(value) for value in passing)
    assert not any(constraint.holds(value) for value in failing)


def test_boundary_cases_follow_from_a_rule():
    made = table(WINDOW).rules[0]
    assert boundary_cases(made) == [
        BoundaryCase("acme.pooling.window", "window_size_nd", 1, allowed=True),
        BoundaryCase("acme.pooling.window", "window_size_nd", 8, allowed=True),
        BoundaryCase("acme.pooling.window", "window_size_nd", 0, allowed=False),
        BoundaryCase("acme.pooling.window", "window_size_nd", 9, allowed=False),
    ]
    spoken = rule("spoken", lambda question: None, source="s", text="anything goes", parameter="anything")
    assert boundary_cases(table(spoken).rules[0]) == []


def test_a_platform_is_of_a_family():
    made = table(rule("platform", platform_is("one", "two"), source="s"))
    assert made.evaluate(ask(pooling(), family="two"))
    [found] = made.evaluate(ask(pooling(), family="three")).violations
    assert (found.parameter, found.actual, found.allowed) == ("platform family", "three", "one, two")
    assert found.message == "platform family must be one of one, two (found three)"


def test_enumerations_are_shown_by_name():
    assert describe([PoolingType.MAX, 3, (1, 2)]) == "(MAX, 3, (1, 2))"


def test_a_question_may_be_about_other_shapes_than_the_networks():
    import attrs

    layer = pooling()
    x = layer.get_input(0)
    asked = ask(layer, specs={x.name: attrs.evolve(x.spec, shape=(7, 8, 32, 32))})
    assert (asked.spec(x).shape, ask(layer).spec(x).shape) == ((7, 8, 32, 32), (1, 8, 32, 32))
