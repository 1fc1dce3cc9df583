"""Identity: the input's spec, with its value."""

from tests.core.network.layers.inferring import known, shape_of, spec

from dryfit.network.layers.identity import Identity


def test_it_has_the_inputs_spec_and_value():
    assert shape_of(Identity(), spec(2, -1)) == (2, -1)
    assert Identity().infer_outputs([known(1, 2)])[0].value.tolist() == [1, 2]
