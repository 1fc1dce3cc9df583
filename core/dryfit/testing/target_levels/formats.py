"""Third level: tensor formats, there and back."""

from __future__ import annotations

from dryfit.testing import format_checks
from dryfit.testing.kit import Cases, declared, require_none
from dryfit.testing.target_levels.target_kit import TargetKit

_NONE = "tensor format of the target's own"


def _format_uses(kit: TargetKit) -> Cases:
    tables = {side: kit.own(f"{side}_formats") or {} for side in ("input", "output")}
    return [(str(use), use) for use in format_checks.format_uses(tables)]


class TargetFormats(TargetKit):
    """Tensor formats of inputs and outputs."""

    cases = {"format_use": _format_uses}

    def test_a_format_is_declared_whole(self, format_use: format_checks.FormatUse | None) -> None:
        """Types, source, name."""
        require_none(format_checks.declaration_problems(declared(format_use, _NONE), self.target))

    def test_a_tensor_survives_its_format(self, format_use: format_checks.FormatUse | None) -> None:
        """Extents, strides, size, pack and unpack agree, and padding is not read, on every platform family."""
        use = declared(format_use, _NONE)
        families = dict.fromkeys(platform.family for platform in self.target.platforms)
        require_none([problem for family in families for problem in format_checks.memory_problems(use, family)])
