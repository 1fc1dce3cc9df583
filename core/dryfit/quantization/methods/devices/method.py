"""The method of a device: INT32 sums, everything else in FP32, and one rounding of the device's own."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.quantization.methods.devices.unweighted import unweighted_rules
from dryfit.quantization.methods.devices.weighted import weighted_rules
from dryfit.quantization.methods.method import MethodRule, QuantizeMethod
from dryfit.quantization.rounding import RoundingMode


def device_method(
    name: str, title: str, rounding: RoundingMode, source: str, rules: Sequence[MethodRule] = ()
) -> QuantizeMethod:
    """A method whose rules are those of all devices with the rounding of this one.

    Args:
        name: the entry point's name.
        title: whose arithmetic it is.
        rounding: how the device finds whole numbers where it computes in INT8.
        source: what says so: that of the device's `Arithmetic` record.
        rules: of the device alone; they come first.
    """
    return QuantizeMethod(
        name=name,
        title=title,
        rules=(*rules, *weighted_rules(rounding, source), *unweighted_rules(rounding, source)),
        source=source,
    )
