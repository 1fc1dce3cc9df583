"""The conformance kit of calibrators: a third party subclasses it in one file, and pytest runs the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from dryfit.network.network import Network
from dryfit.quantization.calibrator import Calibrator
from dryfit.testing import collector_checks, solver_checks
from dryfit.testing.collector_checks import named
from dryfit.testing.kit import Cases, ConformanceKit, declared, require_none
from dryfit.testing.solver_checks import DISTRIBUTIONS, Distribution, samples_of


class CalibratorConformance(ConformanceKit):
    """Tests for every calibrator.

    Attributes:
        calibrator: the calibrator record; the only required attribute of a subclass.
        distributions: test values by name.
        may_exceed_values: whether a range may exceed the largest magnitude.
        is_scaling: whether twice the values have exactly twice the range.
        network: function that creates a network for which the calibrator's own stream has samples. None: no stream.

    Example:
        >>> from dryfit.testing.calibrator_conformance import CalibratorConformance
        >>> class TestHeadroom(CalibratorConformance):
        ...     calibrator = CALIBRATOR
    """

    calibrator: ClassVar[Calibrator]
    distributions: ClassVar[Mapping[str, Distribution]] = DISTRIBUTIONS
    may_exceed_values: ClassVar[bool] = False
    is_scaling: ClassVar[bool] = True
    network: ClassVar[Callable[[], Network] | None] = None

    cases: ClassVar[Mapping[str, Callable[[Any], Cases]]] = {
        "distribution": lambda kit: list(kit.distributions.items())
    }

    def test_the_calibrator_is_found_by_its_name(self) -> None:
        """The calibrator has an entry point."""
        require_none(solver_checks.installation_problems(self.calibrator))

    # The state ----------------------------------------------------------------------------------------------------

    def test_the_order_of_samples_does_not_matter(self, distribution: Distribution) -> None:
        """Other orders of samples give the same bytes."""
        self._require_mergeable()
        require_none(collector_checks.order_problems(self.calibrator, named(samples_of(distribution))))

    def test_batches_do_not_matter(self, distribution: Distribution) -> None:
        """Larger and smaller batches, and arrays with other strides, give the same bytes."""
        self._require_mergeable()
        if self.calibrator.collector.is_per_sample:
            pytest.skip("the collector declares is_per_sample: which values come together matters")
        require_none(collector_checks.batch_problems(self.calibrator, named(samples_of(distribution))))

    def test_merged_parts_are_the_whole(self, distribution: Distribution) -> None:
        """Parts merged in any way give the same bytes."""
        self._require_mergeable()
        require_none(collector_checks.merge_problems(self.calibrator, named(samples_of(distribution))))

    def test_a_state_survives_its_bytes(self, distribution: Distribution) -> None:
        """A state can be serialized, restored and continued."""
        require_none(collector_checks.bytes_problems(self.calibrator, named(samples_of(distribution))))

    def test_damaged_bytes_are_refused(self) -> None:
        """Modified, truncated and empty bytes are rejected."""
        require_none(collector_checks.damage_problems(self.calibrator, self._samples()))

    def test_values_that_are_not_finite_are_refused(self) -> None:
        """NaN and infinity raise errors that name tensor and sample, or are skipped and counted if requested."""
        require_none(collector_checks.nonfinite_problems(self.calibrator, self._samples()))

    # The range ----------------------------------------------------------------------------------------------------

    def test_values_have_a_range(self, distribution: Distribution) -> None:
        """Ranges are positive, finite, and no wider than the values."""
        samples = named(samples_of(distribution))
        require_none(solver_checks.range_problems(self.calibrator, samples, self.may_exceed_values))

    def test_twice_the_values_have_twice_the_range(self, distribution: Distribution) -> None:
        """Ranges scale exactly with the values, for powers of two."""
        if not self.is_scaling:
            pytest.skip("the kit's class states is_scaling = False")
        require_none(solver_checks.scaling_problems(self.calibrator, distribution))

    def test_the_same_state_has_the_same_range(self, distribution: Distribution) -> None:
        """The solver is a pure function, and its details can be written to a report."""
        require_none(solver_checks.purity_problems(self.calibrator, named(samples_of(distribution))))

    def test_zeros_have_no_range_and_a_reason(self) -> None:
        """Zeros, or no values, give a reason instead of an exception or an invented scale."""
        require_none(solver_checks.nothing_problems(self.calibrator))

    # The stream ---------------------------------------------------------------------------------------------------

    def test_its_own_samples_calibrate_a_network(self) -> None:
        """Two new streams give the same ranges."""
        declared(self.calibrator.stream, "stream of the calibrator's own")
        network = declared(type(self).network, "`network` to show the calibrator's samples to")
        require_none(solver_checks.stream_problems(self.calibrator, network))

    def _samples(self) -> collector_checks.Named:
        return named(samples_of(next(iter(self.distributions.values()))))

    def _require_mergeable(self) -> None:
        if not self.calibrator.collector.is_mergeable:
            pytest.skip("the collector declares is_mergeable = False")
