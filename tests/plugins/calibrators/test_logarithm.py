"""The logarithm against decimal arithmetic."""

import decimal

import numpy as np

from dryfit_plugins.calibrators.entropy2 import natural_logarithm


def test_it_is_right_to_the_last_bits():
    random = np.random.default_rng(0)
    integers = [*range(1, 300), *random.integers(1, 2**62, 300).tolist()]
    values = [float(one) for one in integers] + (random.random(300) * 4).tolist() + [2.0**-1022, 0.7071, 0.7072, 1e300]
    found = natural_logarithm(np.array(values))
    with decimal.localcontext(prec=40):
        exact = [decimal.Decimal(value).ln() for value in values]
        errors = [abs(decimal.Decimal(float(a)) - b) / max(1, abs(b)) for a, b in zip(found, exact, strict=True)]
    assert max(errors) < decimal.Decimal("3e-16")


def test_powers_of_two_are_whole_multiples():
    powers = np.arange(-1000, 1000)
    assert (natural_logarithm(np.ldexp(1.0, powers)) == powers * natural_logarithm(np.array(2.0))).all()


def test_a_value_has_the_same_logarithm_in_every_array():
    """No vector width may matter: one by one, or many at once."""
    values = np.random.default_rng(1).random(1001) * 1e6
    at_once = natural_logarithm(values)
    assert (np.array([natural_logarithm(values[one : one + 1])[0] for one in range(1001)]) == at_once).all()
