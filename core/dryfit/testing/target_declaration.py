"""The levels of the conformance kit of targets that build nothing, and the common base of all levels."""

from __future__ import annotations

from typing import Any, ClassVar

import dryfit.network.network  # noqa: F401  fills the table of layer kinds
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.target.fusions import Fusion
from dryfit.target.kernels import Kernel
from dryfit.target.target import Target, inherited
from dryfit.testing import arithmetic_checks, format_checks, record_checks
from dryfit.testing.kit import Cases, ConformanceKit, declared, require_none
from dryfit.testing.trial_networks import TRIAL_PRECISIONS


class TargetKit(ConformanceKit):
    """The base class of the levels.

    Attributes:
        target: the target record; the only required attribute of a subclass.
        networks: number of random networks per precision.
    """

    target: ClassVar[Target]
    networks: ClassVar[int] = 6

    @property
    def complete(self) -> Target:
        """The record with omitted fields filled in from the host."""
        is_host = self.target.segment_rules.is_host
        return self.target if is_host else inherited(self.target, registry.host())

    def own(self, name: str) -> Any:
        """Return what the target itself declares; None if it is inherited, missing, or cannot be loaded.

        A test of the record reports declarations that cannot be loaded, so other tests need not.
        """
        return record_checks.declaration(self.target, name)[0] if record_checks.declares(self.target, name) else None


def precision_cases(kit: TargetKit) -> Cases:
    """Return the computation types of a target."""
    return [(one.name, one) for one in kit.complete.precisions]


def trial_precision_cases(kit: TargetKit) -> Cases:
    """Return the computation types whose engines are compared with the reference."""
    return [(one.name, one) for one in TRIAL_PRECISIONS if one in kit.complete.precisions]


NO_TRIAL_PRECISION = f"precision whose numbers the kit knows ({', '.join(one.name for one in TRIAL_PRECISIONS)})"


class TargetDeclaration(TargetKit):
    """First level: the target record."""

    cases = {
        "fusion": lambda kit: [(one.name, one) for one in kit.own("fusions") or ()],
        "kernel": lambda kit: [(one.name, one) for one in kit.own("kernels") or ()],
    }

    def test_the_device_and_its_platforms_have_names(self) -> None:
        """Device, title, `simulated` and platforms are set."""
        require_none(record_checks.name_problems(self.target))

    def test_each_platform_has_software_within_its_range(self) -> None:
        """Versions are ascending, and every range contains some of them."""
        require_none(record_checks.software_problems(self.target))

    def test_the_precisions_contain_the_default(self) -> None:
        """The computation types are valid and include the default."""
        require_none(record_checks.precision_problems(self.complete))

    def test_every_declaration_can_be_loaded(self) -> None:
        """Every object named by an `..._at` field can be loaded."""
        require_none(record_checks.declaration_problems(self.target))

    def test_the_target_is_installed_and_its_record_imports_nothing_heavy(self) -> None:
        """The entry point exists, and loading it does not import numpy, so that `dryfit targets list` stays fast."""
        require_none(record_checks.installation_problems(self.target))

    def test_a_fusion_joins_layers_that_the_device_has(self, fusion: Fusion | None) -> None:
        """Fusions have a name, supported layer kinds and a source."""
        require_none(record_checks.fusion_problems(declared(fusion, "fusion of the target's own"), self.target))

    def test_a_kernel_is_declared_whole(self, kernel: Kernel | None) -> None:
        """Kernels have a name, layer kinds and data types."""
        own = declared(kernel, "kernel of the target's own: it inherits the host's")
        require_none(record_checks.kernel_declaration_problems(own, self.target))


_NO_ARITHMETIC = "arithmetic of the target's own"


class TargetArithmetic(TargetKit):
    """Arithmetic of each precision."""

    cases = {"precision": precision_cases}

    def test_a_precision_says_how_it_computes(self, precision: DataType | None) -> None:
        """Accumulator, rounding, fidelity and source are declared."""
        declared(self.own("arithmetic"), _NO_ARITHMETIC)
        require_none(arithmetic_checks.arithmetic_problems(declared(precision, "precision"), self.complete))

    def test_only_precisions_have_an_arithmetic(self) -> None:
        """No arithmetic is declared for other types."""
        declared(self.own("arithmetic"), _NO_ARITHMETIC)
        require_none(arithmetic_checks.superfluous_arithmetic(self.complete))


_NO_FORMATS = "tensor format of the target's own"


def _format_uses(kit: TargetKit) -> Cases:
    tables = {side: kit.own(f"{side}_formats") or {} for side in ("input", "output")}
    return [(str(use), use) for use in format_checks.format_uses(tables)]


class TargetFormats(TargetKit):
    """Tensor formats of inputs and outputs."""

    cases = {"format_use": _format_uses}

    def test_a_format_is_declared_whole(self, format_use: format_checks.FormatUse | None) -> None:
        """Formats have types, a source and a name."""
        require_none(format_checks.declaration_problems(declared(format_use, _NO_FORMATS), self.target))

    def test_a_tensor_survives_its_format(self, format_use: format_checks.FormatUse | None) -> None:
        """Extents, strides, size, pack and unpack are consistent and ignore padding, on every platform family."""
        use = declared(format_use, _NO_FORMATS)
        families = dict.fromkeys(platform.family for platform in self.target.platforms)
        require_none([problem for family in families for problem in format_checks.memory_problems(use, family)])
