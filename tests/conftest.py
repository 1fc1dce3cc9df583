"""What every test may use: the files beside the repository, hypothesis without clocks, a warm kernel cache."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings
from tests.guarded_engines import guarded_engines

from dryfit.testing.guarded_memory import GuardedSide

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared"

# No test may depend on a clock, and a failure in one run has to be a failure in the next.
settings.register_profile("dryfit", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("dryfit")

# Compiled kernels are shared by all tests of a run; nothing outside the repository is written.
if "DRYFIT_CACHE_DIR" not in os.environ:
    os.environ["DRYFIT_CACHE_DIR"] = str(REPOSITORY / ".cache" / "dryfit")
    os.environ.setdefault("DRYFIT_CACHE_KEY", str(REPOSITORY / ".cache" / "dryfit.key"))


SLOW = (
    "tests/core/cli/test_plugins_new.py",
    "tests/core/testing/test_wrong_targets.py",
    "tests/integration/test_engines.py",
    "tests/integration/test_forged_engines.py",
    "tests/repository/test_generated_docs.py",
    "tests/repository/test_guides.py",
    "tests/repository/test_resnet_example.py",
    "tests/targets/cpu/compiler/test_object_cache.py",
    "tests/targets/cpu/test_inner_loops.py",
    "tests/targets/cpu/test_instruction_counts.py",
    "tests/targets/cpu/test_tiers.py",
)
"""Files whose tests run for five seconds to three minutes each, measured with two workers on a cold kernel cache: they
start processes, compile all kernels of a tier, or run pages and networks whole."""


QUICK = (
    "tests/core/builder/placement",
    "tests/core/cli/test_check.py",
    "tests/core/cli/test_doctor.py",
    "tests/core/cli/test_main.py",
    "tests/core/network",
    "tests/core/onnx",
    "tests/core/passes",
    "tests/core/plugins",
    "tests/core/target",
    "tests/plugins/layers",
    "tests/repository/test_front_door.py",
    "tests/repository/test_layout.py",
    "tests/targets/cpu/kernels/test_pooling.py",
    "tests/targets/dla",
    "tests/targets/gpu",
)
"""What `make quick` runs: networks, import, passes, placement, rules of devices, one file of kernels, one command."""

SHARE_VARIABLE = "DRYFIT_TEST_SHARE"
"""Which share of the tests of each function runs, and of the examples that it draws: 4 for every fourth."""

SHARED_FIXTURES = {"shared", "shared_models", "shared_images"}


def pytest_configure(config: pytest.Config) -> None:
    """Tell pytest the marks that are given here."""
    config.addinivalue_line("markers", "quick: part of the representative tests that `make quick` runs")
    config.addinivalue_line("markers", "slow: in a file whose tests take long; `-m 'not slow'` leaves them out")
    config.addinivalue_line("markers", "nightly: more of a kind that `make test` runs a part of; for `--thorough`")
    config.addinivalue_line("markers", "shared: needs models or pictures that are not part of the repository")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that run all tests, and that put the memory of engines between guard pages."""
    parser.addoption("--thorough", action="store_true", help="also run the tests that are marked as nightly")
    parser.addoption(
        "--guard-pages",
        choices=[side.value for side in GuardedSide],
        help="put each array, workspace and packed weight of engines between guard pages, touched by this end "
        "of it; what reads or writes outside ends the run",
    )


@pytest.fixture(autouse=True)
def _guard_pages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Guard pages around the memory of engines, where they are asked for."""
    side = request.config.getoption("--guard-pages")
    if side is None:
        yield
        return
    with guarded_engines(GuardedSide(side), limit=1 << 34) as guards:
        yield
        assert not guards.problems()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `--thorough` runs; mark tests that are quick or slow, or need files from elsewhere.

    Tests that draw examples draw half of them otherwise: they are the same in every run.
    """
    if not config.getoption("--thorough"):
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        if nightly:
            config.hook.pytest_deselected(items=nightly)
            items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        draw_fewer(items, 2)
    share = int(os.environ.get(SHARE_VARIABLE, "1"))
    if share > 1:
        items[:] = one_of_each(items, share)
        draw_fewer(items, share)
    for item in items:
        if item.nodeid.startswith(QUICK):
            item.add_marker("quick")
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
        if SHARED_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("shared")


def one_of_each(items: list[pytest.Item], share: int) -> list[pytest.Item]:
    """Return every `share`th test of each function, the first among them, so that none is left out altogether."""
    seen: Counter[str] = Counter()
    kept = []
    for item in items:
        function = item.nodeid.partition("[")[0]
        if seen[function] % share == 0:
            kept.append(item)
        seen[function] += 1
    return kept


def draw_fewer(items: list[pytest.Item], share: int) -> None:
    """Let tests that draw examples draw as many fewer."""
    for test in {item.obj for item in items if is_hypothesis_test(getattr(item, "obj", None))}:
        whole = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(whole, max_examples=-(-whole.max_examples // share))


def pytest_collection() -> None:
    """Search for no garbage while thousands of tests are collected: all of it stays, and a search looks at all."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep what was collected out of every later search for garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of larger models and pictures that may lie beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs the models and pictures in ../shared, which is not there")
    return SHARED


@pytest.fixture(scope="session")
def shared_models(shared: Path) -> Path:
    """The folder of larger models."""
    return shared / "models"


@pytest.fixture(scope="session")
def shared_images(shared: Path) -> Path:
    """The folder of pictures."""
    return shared / "images"


@pytest.fixture(scope="session")
def digits_model() -> Path:
    """The small trained network of the examples."""
    return REPOSITORY / "examples" / "digits" / "digits.onnx"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the tests that were skipped since their files are not there."""
    skipped = [one for one in terminalreporter.stats.get("skipped", ()) if "shared" in getattr(one, "keywords", ())]
    if skipped:
        terminalreporter.write_line(
            f"{len(skipped)} of the skipped tests need models and pictures in ../shared, which are not part of the "
            "repository: accuracy in INT8, and import, placement and quantization of whole published models."
        )
