"""What a build warns of: alike warnings together, all of them where it is asked for."""

import logging

import pytest

from dryfit.cli.log import build_log

MESSAGE = "'%s' cannot run on DLA: stride must be 1 (found %d) [dla.slice.stride]. It runs on GPU"


def warn(verbose: bool, capsys: pytest.CaptureFixture[str]) -> list[str]:
    logger = logging.getLogger("dryfit.builder")
    with build_log(verbose=verbose):
        for index in range(279):
            logger.warning(MESSAGE, f"slice_{index}", index + 2)
        logger.warning("something else")
        logger.info("stage 1 of 10 done")
    return capsys.readouterr().err.splitlines()


def test_alike_warnings_are_one_with_the_first_names(capsys):
    lines = warn(False, capsys)
    assert lines[0] == MESSAGE % ("slice_0", 2)
    assert lines[1].split() == ["likewise", "'slice_1',", "'slice_2'", "and", "276", "more"]
    assert lines[2:] == ["something else"]


def test_a_verbose_build_has_each_of_them(capsys):
    lines = warn(True, capsys)
    assert len(lines) == 281
    assert lines[278] == MESSAGE % ("slice_278", 280)


def fail_after_a_warning():
    with build_log():
        logging.getLogger("dryfit.builder").warning("a warning")
        raise ValueError("it fails")


def test_warnings_before_an_error_are_not_lost(capsys):
    with pytest.raises(ValueError, match="fails"):
        fail_after_a_warning()
    assert capsys.readouterr().err == "a warning\n"
