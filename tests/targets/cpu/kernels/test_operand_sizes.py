import numpy as np
import pytest

from dryfit_cpu.kernels.operands import aligned_empty, fp32_bytes


@pytest.mark.parametrize("exponent", [4, 56, 58, 60, 62, 64, 70])
def test_workspace_sizes_do_not_wrap_around(exponent):
    assert fp32_bytes((2**exponent, 16)) == 2**exponent * 64 + 64
    assert fp32_bytes((np.int64(2**31), np.int64(2**33))) == 2**66 + 64


def test_an_array_takes_the_bytes_of_its_shape():
    assert aligned_empty((3, 5), np.float32).nbytes == 60
