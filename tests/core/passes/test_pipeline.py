"""A pipeline runs its passes in order, says what they did, and takes more of them."""

import logging

import pytest

from dryfit.errors import BuildError, ConfigError, NetworkError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.passes.canonical import canonical_pipeline
from dryfit.passes.pipeline import Pipeline, network_pass


def _network():
    network = Network("net")
    x = network.add_input("x", DataType.FLOAT, (2,))
    network.mark_output(network.add_identity(network.add_identity(x).get_output(0)).get_output(0))
    return network


def _pass(name, log=None):
    @network_pass(name)
    def noted(network):
        if log is not None:
            log.append(name)
        return False

    return noted


def test_passes_run_in_the_order_that_additions_by_name_give():
    log = []
    pipeline = Pipeline([_pass("b", log), _pass("d", log)])
    pipeline.insert_before("b", _pass("a", log))
    pipeline.insert_after("b", _pass("c", log))
    pipeline.append(_pass("e", log))
    pipeline.remove("d")
    assert pipeline.names == ["a", "b", "c", "e"]
    reports = pipeline.run(_network()).reports
    assert log == ["a", "b", "c", "e"]
    assert [(report.name, report.found.changed) for report in reports] == [(name, False) for name in log]


def test_a_name_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(UnknownNameError) as caught:
        canonical_pipeline().insert_after("fold-constant", _pass("x"))
    assert "Did you mean 'fold-constants'" in str(caught.value)


def test_a_name_that_is_there_is_refused():
    with pytest.raises(ConfigError, match="found fold-constants"):
        canonical_pipeline().append(_pass("fold-constants"))


def test_each_stage_is_logged_and_dumped(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "dryfit.passes"):
        reports = canonical_pipeline().run(_network(), tmp_path / "stages").reports
    assert [record.args[0] for record in caplog.records] == canonical_pipeline().names
    changed = {report.name: (report.layers_before, report.layers_after) for report in reports if report.found.changed}
    assert changed == {"remove-identities": (2, 1)}
    files = sorted(path.name for path in (tmp_path / "stages").iterdir())
    assert files == ["00-start.txt", *(f"{i:02d}-{name}.txt" for i, name in enumerate(canonical_pipeline().names, 1))]
    assert (tmp_path / "stages" / "00-start.txt").read_text().count("identity(") == 2
    assert (tmp_path / "stages" / files[-1]).read_text().count("identity(") == 1


@pytest.mark.parametrize("error", [ValueError("odd"), NetworkError("odd")])
def test_a_pass_that_fails_is_named(error):
    @network_pass("broken")
    def broken(network):
        raise error

    with pytest.raises(BuildError, match=r"pass 'broken'.*odd") as caught:
        Pipeline([broken]).run(_network())
    assert caught.value.__cause__ is error


def test_a_pass_that_leaves_a_wrong_network_is_named():
    @network_pass("breaks-shapes")
    def breaks(network):
        shuffle = network.add_shuffle(network.tensor("x"))
        shuffle.reshape_dims = (3,)
        return True

    with pytest.raises(BuildError, match=r"pass 'breaks-shapes'.*keep the number of elements"):
        Pipeline([breaks]).run(_network())
