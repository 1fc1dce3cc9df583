"""Logs that people published, by their facts: each layer, rule, list and problem in them is found."""

from __future__ import annotations

import io

import attrs
import pytest
from tests.core.board.logs.public_logs import FORMS, PUBLIC_LOGS, PublicLog

import dryfit
from dryfit.answers.explain_rule import all_rules
from dryfit.board.logs.message import ROLES
from dryfit.board.logs.messages import MESSAGES


def answer_of(text: str | bytes) -> dryfit.answers.explain_log.ExplainLogAnswer:
    return dryfit.explain_log(io.BytesIO(text.encode() if isinstance(text, str) else text))


@pytest.mark.parametrize("log", PUBLIC_LOGS, ids=lambda log: log.source)
def test_a_public_log_is_explained(log: PublicLog) -> None:
    answer = answer_of(log.text)
    assert {one.name: list(one.rules) for one in answer.fallen} == log.fallen
    found = {one.message for one in answer.problems} | ({"memory.dla_pools"} if answer.memory else set())
    assert found == set(log.messages)
    assert [list(one.layers) for one in answer.segments] == list(map(list, log.segments))
    assert [one.name for one in answer.gpu_layers] == list(log.gpu)
    build = answer.build
    assert (build.tensorrt, build.platform, build.outcome) == (log.version, log.platform, log.outcome)
    assert answer.loadables.limit == log.limit
    assert len(answer.unknown) == log.unknown


@pytest.mark.parametrize("log", PUBLIC_LOGS, ids=lambda log: log.source)
def test_each_cause_and_problem_of_a_public_log_says_what_would_help(log: PublicLog) -> None:
    answer = answer_of(log.text)
    assert all(cause.meaning and cause.remedy and cause.layers for cause in answer.causes)
    assert {name for cause in answer.causes for name in cause.layers} == set(log.fallen)
    str(answer)  # has a form as text
    answer.to_json()


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_a_log_does_not_matter(form: str) -> None:
    """A logger without severities, that of jetson-inference, shows no warnings that need one to be recognized."""
    for log in PUBLIC_LOGS:
        if any(line[0] in ("other", "list", "driver", "safe") for line in log.lines) or log.head:
            continue
        answer = answer_of(attrs.evolve(log, form=form).text)
        assert {one.name for one in answer.fallen} == set(log.fallen), log.source


def test_there_are_enough_logs_with_a_source_each() -> None:
    assert len({log.source for log in PUBLIC_LOGS}) == len(PUBLIC_LOGS) >= 20


def test_every_message_cites_rules_that_exist_and_a_source() -> None:
    known = {rule.rule for family in all_rules() for rule in family.rules}
    for message in MESSAGES:
        cited = {*message.rules, *(rule for several in message.operation_rules.values() for rule in several)}
        assert cited <= known, message.id
        assert message.role in ROLES
        assert message.meaning
        assert message.versions
        assert message.source


def test_message_names_are_unique() -> None:
    assert len({one.id for one in MESSAGES}) == len(MESSAGES)
