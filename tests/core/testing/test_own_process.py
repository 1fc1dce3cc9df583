"""Tests in a process of their own: they pass, fail and skip as they do here, and a crash is a failure of one test."""

import ctypes
import os

import pytest

from dryfit.testing.own_process import about_to_run, can_fork, run_in_own_process

pytestmark = pytest.mark.skipif(not can_fork(), reason="the system has no fork")


def test_what_passes_passes_and_leaves_this_process_as_it_was():
    seen = []
    run_in_own_process(lambda: seen.append(os.getpid()))
    assert seen == []


def test_a_failure_is_told_here():
    with pytest.raises(pytest.fail.Exception, match=r"it writes beside its output"):
        run_in_own_process(lambda: pytest.fail("it writes beside its output"))


def test_a_skip_is_told_here():
    with pytest.raises(pytest.skip.Exception, match="nothing to test"):
        run_in_own_process(lambda: pytest.skip("nothing to test"))


def test_an_exception_fails_the_test_with_its_traceback():
    with pytest.raises(pytest.fail.Exception, match=r"(?s)test_own_process.*ZeroDivisionError"):
        run_in_own_process(lambda: 1 // 0)


def test_a_crash_names_the_signal_and_what_ran():
    def crash():
        about_to_run("acme.relu for a layer")
        ctypes.c_int.from_address(8).value = 1

    with pytest.raises(pytest.fail.Exception, match=r"SIGSEGV while this ran: acme.relu for a layer"):
        run_in_own_process(crash)


def test_a_process_that_ends_itself_fails():
    with pytest.raises(pytest.fail.Exception, match="exit code 3"):
        run_in_own_process(lambda: os._exit(3))


def test_a_note_outside_of_such_a_test_changes_nothing():
    about_to_run("whatever")
    run_in_own_process(lambda: None)
