"""First level: the record of a target, and whether all that it names can be loaded and told apart."""

from __future__ import annotations

from dryfit.target.fusions import Fusion
from dryfit.target.kernels import Kernel
from dryfit.testing import kernel_record_checks, record_checks
from dryfit.testing.kit import declared, require_none
from dryfit.testing.target_levels.target_kit import TargetKit


class TargetDeclaration(TargetKit):
    """The record."""

    cases = {
        "fusion": lambda kit: [(one.name, one) for one in kit.own("fusions") or ()],
        "kernel": lambda kit: [(one.name, one) for one in kit.own("kernels") or ()],
    }

    def test_the_device_and_its_platforms_have_names(self) -> None:
        """Device, title, what is simulated, platforms."""
        require_none(record_checks.name_problems(self.target))

    def test_each_platform_has_software_within_its_range(self) -> None:
        """Versions rise; ranges contain some of them."""
        require_none(record_checks.software_problems(self.target))

    def test_the_precisions_contain_the_default(self) -> None:
        """Computation types."""
        require_none(record_checks.precision_problems(self.complete))

    def test_every_declaration_can_be_loaded(self) -> None:
        """What the record names by `..._at`."""
        require_none(record_checks.declaration_problems(self.target))

    def test_the_target_is_installed_and_its_record_imports_nothing_heavy(self) -> None:
        """Its entry point; no numpy, so that `dryfit targets list` stays quick."""
        require_none(record_checks.installation_problems(self.target))

    def test_a_fusion_joins_layers_that_the_device_has(self, fusion: Fusion | None) -> None:
        """Name, layer kinds, source."""
        require_none(kernel_record_checks.fusion_problems(declared(fusion, "fusion of the target's own"), self.target))

    def test_a_kernel_is_declared_whole(self, kernel: Kernel | None) -> None:
        """Name, layer kinds, data types."""
        own = declared(kernel, "kernel of the target's own: it inherits the host's")
        require_none(kernel_record_checks.kernel_declaration_problems(own, self.target))
