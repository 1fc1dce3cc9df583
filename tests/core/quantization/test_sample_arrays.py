"""Samples as users hand them over: mappings, arrays, lists of numbers, batches; and what is none."""

import numpy as np
import pytest

from dryfit import ActivationType, Builder, BuilderFlag, DataType, Network, calibrate_ranges
from dryfit.calibration.calibrate import calibrate
from dryfit.errors import CalibrationError
from dryfit.plugins.calibrators import calibrator
from dryfit.quantization.calibration_data import source_of
from dryfit.quantization.sample_arrays import named_samples

ARRAYS = np.random.default_rng(0).standard_normal((6, 3, 4, 4)).astype(np.float32)
MINMAX = calibrator("minmax")


def network(*names, batch=1):
    made = Network("relu")
    for name in names or ("x",):
        x = made.add_input(name, DataType.FLOAT, (batch, 3, 4, 4))
        made.mark_output(made.add_activation(x, ActivationType.RELU).get_output(0))
    return made


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


FORMS = {
    "mappings": [{"x": one[None]} for one in ARRAYS],
    "named": [(f"picture {index}", {"x": one[None]}) for index, one in enumerate(ARRAYS)],
    "arrays": [one[None] for one in ARRAYS],
    "arrays without a batch": list(ARRAYS),
    "one array": ARRAYS,
    "batches": [ARRAYS[:2], ARRAYS[2:]],
    "lists of numbers": [one[None].tolist() for one in ARRAYS],
    "numbers in a mapping": [{"x": one[None].tolist()} for one in ARRAYS],
    "as get_batch gives them": [[one[None]] for one in ARRAYS],
    "dlpack": [OnlyDlpack(one[None]) for one in ARRAYS],
    "a generator": (one[None] for one in ARRAYS),
}


@pytest.mark.parametrize("samples", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_ranges(samples):
    found = calibrate_ranges(network(), MINMAX, samples)
    assert found["x"].dynamic_range.threshold == np.abs(ARRAYS).max()


def test_a_fixed_batch_is_one_sample_and_of_a_dynamic_one_each_row_is():
    assert [(name, feeds["x"].shape[0]) for name, feeds in named_samples(ARRAYS, network(batch=3))] == [
        ("0", 3),
        ("1", 3),
    ]
    assert len(list(named_samples([ARRAYS], network(batch=-1)))) == len(ARRAYS)


def test_builds_and_the_fast_calibration_take_arrays_too():
    made, config = network(), Builder().create_builder_config()
    config.set_flag(BuilderFlag.INT8)
    config.calibrate_with("minmax", ARRAYS)
    engine = Builder().build_engine(made, config)
    largest = np.abs(ARRAYS).max()
    assert engine.plan.network.tensor("x").dynamic_range[1] == largest
    assert calibrate(made, "minmax", list(ARRAYS))["x"].dynamic_range.threshold == largest


@pytest.mark.parametrize(
    ("samples", "where", "found"),
    [
        ([ARRAYS[:1], "picture.png"], "sample '1'", "a str"),
        ([None], "sample '0'", "a NoneType"),
        ([{"x": "picture.png"}], "sample '0'", "a str"),
        ([[[1.0], [2.0, 3.0]]], "sample '0'", "a list that makes no array"),
        ({"x": ARRAYS[:1]}, "network 'relu'", "a dict"),
        ("pictures", "network 'relu'", "a str"),
        (7, "network 'relu'", "a int"),
        ([("cat", 7j)], "sample 'cat'", "a complex"),
    ],
)
def test_what_is_no_sample_is_refused_with_what_one_is(samples, where, found):
    with pytest.raises(CalibrationError) as error:
        calibrate_ranges(network(), MINMAX, samples)
    assert error.value.where == where
    assert error.value.found.startswith(found)
    assert "{'x': array}, or an array" in error.value.allowed


def test_of_several_inputs_a_sample_says_which_array_is_for_which():
    with pytest.raises(CalibrationError) as error:
        calibrate_ranges(network("a", "b"), MINMAX, [ARRAYS[:1]])
    assert error.value.allowed == "{'a': array, 'b': array}"


def test_an_array_that_does_not_fit_is_refused_with_the_shape():
    with pytest.raises(CalibrationError) as error:
        calibrate_ranges(network(), MINMAX, [ARRAYS[:, :2]])
    assert (error.value.where, error.value.found) == ("sample '0', input 'x'", (6, 2, 4, 4))


def test_a_function_may_give_arrays(tmp_path, monkeypatch):
    (tmp_path / "given.py").write_text("import numpy as np\ndef f():\n    return [np.ones((1, 3, 4, 4), np.float32)]\n")
    source = source_of(f"{tmp_path / 'given.py'}:f")
    ((name, feeds),) = source.samples(source.names(network()), network())
    assert (name, feeds["x"].shape) == ("0", (1, 3, 4, 4))
