"""`--quantize-method`: whose integer arithmetic computes the layers of a quantized model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from dryfit.errors import ConfigError

if TYPE_CHECKING:
    from dryfit.network.network import Network

OPTION = "--quantize-method"
METHODS = Sequence[tuple[str, str]]
"""Pattern of layers to name of a method; the pattern "" is the network's own."""


class MethodOfLayers(click.ParamType):
    """`tflite`, or `conv1=onnx` for the layers that a pattern fits, as (pattern, name)."""

    name = "method"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """The pattern, which may contain any character, and the name."""
        if isinstance(value, tuple):
            return value
        pattern, equals, method = (part.strip() for part in str(value).rpartition("="))
        if not method or bool(pattern) != bool(equals):
            self.fail(f"{value!r} is not like tflite or conv1=onnx", param, ctx)
        return pattern, method


quantize_method_option: Callable[[Any], Any] = click.option(
    OPTION,
    "quantize_methods",
    multiple=True,
    type=MethodOfLayers(),
    metavar="[LAYER=]NAME",
    help="Compute quantized layers as a library or a device does, to the last code: all (tflite, onnx, ...), or those "
    "of a pattern as in --placement (conv1=onnx; none for none). On this machine's CPU, unless --device says "
    "otherwise. Also imports QLinear operators.",
)


def network_method(given: METHODS) -> str:
    """What a network's `quantize_method` is: the last name without a pattern; "none" where only layers have one."""
    return next((method for pattern, method in reversed(given) if not pattern), "none" if given else "")


def refuse_quantize_methods(given: METHODS, problem: str) -> None:
    """Refuse the option for a command in which nothing is computed by a method.

    Raises:
        ConfigError: with the problem, where a method is named.
    """
    if given:
        raise ConfigError(
            problem,
            where=OPTION,
            found=", ".join(sorted({method for _, method in given})),
            remedy="Leave the option out: quantize methods are computed on this machine",
        )


def take_quantize_methods(network: Network, given: METHODS) -> None:
    """Set the methods of the layers that patterns fit; later ones win.

    Raises:
        UnknownNameError: there is no such method.
        ConfigError: a pattern fits no layer; all of them are listed.
    """
    from dryfit.builder.placement.layer_pattern import LayerPattern
    from dryfit.passes.quantized_operators.chosen_methods import NONE
    from dryfit.plugins.quantize_methods import quantize_method

    for _, method in given:
        if method != NONE:
            quantize_method(method, where=OPTION)
    patterns = [(LayerPattern(pattern, repr(f"{pattern}={method}")), method) for pattern, method in given if pattern]
    unmatched = [one.problem(network.layers) for one, _ in patterns if not one.layers_in(network.layers)]
    if unmatched:
        raise ConfigError("The quantize methods do not fit the network", where=OPTION, found="; ".join(unmatched))
    for one, method in patterns:
        for layer in one.layers_in(network.layers):
            layer.quantize_method = method
