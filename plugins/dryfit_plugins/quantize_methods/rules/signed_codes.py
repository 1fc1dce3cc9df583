"""Rules of a library that takes UINT8 only, for INT8 codes too."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.data_types import DataType
from dryfit.quantization.methods.method import MethodRule


def for_int8_too(rules: Sequence[MethodRule], library: str) -> tuple[MethodRule, ...]:
    """Rules of UINT8, and behind them the same of INT8.

    An INT8 tensor is the UINT8 tensor of the same numbers with codes and zero points 128 lower, which is how whoever
    gives it to the library hands it over. What comes back is 128 lower too: definitions read codes by their distance
    from zero points and from the ends of their type. Nothing ran in INT8, so these rules are inferred.

    Args:
        rules: of UINT8, with definitions and conditions that name no type.
        library: its name.
    """
    return (*rules, *(_of_int8(rule, library) for rule in rules))


def _of_int8(rule: MethodRule, library: str) -> MethodRule:
    return attrs.evolve(
        rule,
        types=frozenset({DataType.INT8}),
        case_text=rule.case_text.replace("UINT8", "INT8"),
        formula=f"with codes and zero points 128 higher, as UINT8: {rule.formula}",
        fidelity="inferred",
        source=f"{library} takes UINT8 only, and the same numbers have UINT8 codes 128 higher; of those {rule.source}",
    )
