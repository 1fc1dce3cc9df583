"""Calibrators by name: each of the three sorts, and what a package may get wrong."""

import pytest

from dryfit.errors import PluginError, UnknownNameError
from dryfit.plugins import registry
from dryfit.plugins.calibrators import calibrator, calibrators
from dryfit.plugins.discovery import CALIBRATORS
from dryfit.quantization.histogram import Histogram

MODULE = '''
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.collector import Collector


def largest(state):
    return Solution.of_threshold(state.magnitude)


class Own(Collector):
    state_name = "own"

    def add(self, values, sample): ...
    def payload(self): return b""
    def restore(self, payload): ...


SOLVER = Calibrator(name="acme-solver", title="a solver", solve=largest)
COLLECTOR = Calibrator(name="acme-collector", title="a collector", solve=largest, collector=Own)


class Stream:
    """Acme's pictures.

    More of them.
    """

    def get_batch_size(self): return 1
    def get_batch(self, names): return None
    def read_calibration_cache(self): return None
    def write_calibration_cache(self, cache): ...
    def get_algorithm(self): return 3


class StrangeStream(Stream):
    def get_algorithm(self): return 7


class NeedsArguments(Stream):
    def __init__(self, folder): ...
'''


GOOD = {"acme-solver": "acme:SOLVER", "acme-collector": "acme:COLLECTOR", "acme-stream": "acme:Stream"}
GOOD_NAMES = sorted(GOOD)
OWN_NAMES = [
    "auto",
    "entropy",
    "entropy-all-bins",
    "entropy2",
    "entropy2-tensorrt",
    "legacy",
    "mean-squared-error",
    "minmax",
    "percentile",
]


@pytest.fixture
def with_packages(install_package):
    """A function that installs packages, each with its calibrators by name; returns the registry, which has them."""

    def install(**packages):
        for distribution, calibrators_by_name in packages.items():
            install_package(distribution.replace("_", "-"), {CALIBRATORS: calibrators_by_name}, {"acme": MODULE})
        registry.begin_again(disabled="", selected=",".join(packages).replace("_", "-"))
        return registry

    return install


def test_the_calibrators_of_the_house_are_found_by_name():
    assert calibrator("entropy2").collector is Histogram
    assert {"entropy2", "minmax"} <= set(calibrators())


def test_all_three_sorts_are_found(with_packages):
    plugins = with_packages(acme=GOOD)
    found = calibrators()
    assert list(found) == [*GOOD_NAMES, *OWN_NAMES]
    assert not plugins.failures()
    assert found["acme-collector"].collector.__name__ == "Own"


def test_a_stream_is_solved_by_the_calibrator_that_it_asks_for(with_packages):
    with_packages(acme=GOOD)
    found = calibrator("acme-stream")
    assert (found.name, found.title) == ("acme-stream", "Acme's pictures.")
    assert found.solve is calibrator("minmax").solve
    assert found.stream().get_algorithm() == 3


def test_only_the_named_calibrator_is_loaded(with_packages):
    plugins = with_packages(acme={**GOOD, "broken": "acme:MISSING"})
    calibrator("acme-solver")
    assert not plugins.failures()


def test_an_unknown_name_is_told_with_the_closest(with_packages):
    with_packages(acme=GOOD)
    with pytest.raises(UnknownNameError, match=r"calibrator: 'acme-solvr'.*Did you mean 'acme-solver'"):
        calibrator("acme-solvr")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("MISSING", "has no attribute 'MISSING'"),
        ("largest", "The entry point must name a calibrator .*found function"),
        ("Own", "The entry point must name a calibrator .*found Own"),
        ("COLLECTOR", "A calibrator must have the name of its entry point .*found 'acme-collector'; allowed: 'broken'"),
        ("StrangeStream", "Unknown calibration algorithm"),
        ("NeedsArguments", "missing 1 required positional argument: 'folder'"),
    ],
)
def test_a_broken_calibrator_is_named_with_its_package_and_stops_no_other(with_packages, value, message):
    with_packages(acme=GOOD, acme_pack={"broken": f"acme:{value}"})
    assert "broken" not in calibrators()
    assert "acme-solver" in calibrators()
    with pytest.raises(PluginError, match=f"acme-pack 1.2: The calibrator 'broken' could not be loaded.*{message}"):
        calibrator("broken")


def test_a_name_that_two_packages_claim_belongs_to_neither(with_packages):
    plugins = with_packages(acme=GOOD, rival={"acme-solver": "acme:SOLVER"})
    assert "acme-solver" not in calibrators()
    assert {one.distribution for one in plugins.failures()} == {"acme", "rival"}
    with pytest.raises(PluginError, match=r"acme-solver.*is registered by more than one package.*acme.*rival"):
        calibrator("acme-solver")


def test_nobody_takes_a_name_from_the_house(with_packages):
    with_packages(rival={"minmax": "acme:SOLVER"})
    assert calibrators()["minmax"] is calibrator("minmax")
    assert calibrator("minmax").title == "the largest magnitude"
