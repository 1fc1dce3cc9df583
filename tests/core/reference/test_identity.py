"""The reference of identities."""

from dryfit.network.layers.identity import Identity

from .oracle import random_array, run


def test_it_is_the_input_and_no_copy():
    x = random_array((2, 3))
    assert run(Identity(), x)[0] is x
