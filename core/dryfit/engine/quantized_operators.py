"""The quantize methods that an engine needs: looked for before it runs, so that none is missed in the middle."""

from __future__ import annotations

from dryfit.engine.packages import install_remedy, method_key
from dryfit.engine.plan import Plan
from dryfit.errors import PluginError, UnknownNameError
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.plugins.quantize_methods import connect, quantize_method


def require_quantize_methods(plan: Plan) -> None:
    """Find the methods of an engine's quantized operators.

    Raises:
        PluginError: some are not there, or cannot be used; all that are missing are listed with their packages.
    """
    connect()
    layers: dict[str, list[str]] = {}
    for layer in plan.network.layers:
        if isinstance(layer, QuantizedOperator):
            layers.setdefault(layer.method, []).append(layer.name)
    missing = [name for name in layers if not _is_installed(name)]
    if missing:
        raise PluginError(
            "The engine was built with quantize methods that are not installed",
            where=", ".join(f"layer {layers[name][0]!r}" for name in missing),
            found=", ".join(f"no {name}" for name in missing),
            remedy="; ".join(dict.fromkeys(install_remedy(plan, method_key(name)) for name in missing)),
        )


def _is_installed(name: str) -> bool:
    try:
        quantize_method(name)
    except UnknownNameError:
        return False
    return True
