"""The tests of a conformance kit as plain functions, run over all their cases."""

import inspect
import pickle

import pytest

from dryfit.testing import own_process, target_kernels
from dryfit.testing.target_conformance import TargetConformance

Failed = pytest.fail.Exception
Skipped = pytest.skip.Exception

PROCESSES = (
    "test_another_process_builds_the_same_engines",
    "test_the_target_is_installed_and_its_record_imports_nothing_heavy",
)
"""Tests that start another process, which takes seconds."""


def kit_of(target, **attributes):
    """The kit as a third party subclasses it."""
    return type("TestAcme", (TargetConformance,), {"target": target, **attributes})()


def small_kit_of(target, networks=1, examples=1):
    """With few of everything, for running all of it."""
    return kit_of(target, networks=networks, layers=2, examples=examples)


def every_test():
    """Names of the kit's tests."""
    return [name for name in dir(TargetConformance) if name.startswith("test_")]


def failures(kit, name, folder):
    """The messages of the failures of one test, over all its cases."""
    test, found = getattr(kit, name), []
    arguments = [argument for argument in inspect.signature(test).parameters if argument != "tmp_path"]
    cases = kit.cases_for(arguments[0]) if arguments else [("", None)]
    for _, value in cases:
        given = dict.fromkeys(arguments, value)
        if "tmp_path" in inspect.signature(test).parameters:
            given["tmp_path"] = folder
        try:
            test(**given)
        except Failed as failure:
            found.append(str(failure))
        except Skipped:
            continue
        except Exception as error:  # noqa: BLE001  whatever a test raises fails it
            found.append(repr(error))
    return found


def failed_tests(kit, folder, names, *, crashes=False):
    """The messages of the failures of each of these tests that fails.

    They run in one fork, which is faster than one for each case; a target that `crashes` needs one for each.
    """
    answer = folder / "failed"

    def run():
        if not crashes:
            own_process.can_fork = lambda: False  # of the fork alone
        found = {name: failures(kit, name, folder) for name in names}
        answer.write_bytes(pickle.dumps({name: messages for name, messages in found.items() if messages}))

    target_kernels._let_hypothesis_read_constants()
    own_process.run_in_own_process(run)
    return pickle.loads(answer.read_bytes())  # noqa: S301  written by the fork
