"""The option `--sparsity` that every command about a model shares, in trtexec's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dryfit.cli.console import print_note
from dryfit.cli.log import log_to_stderr
from dryfit.short_text import count_text

if TYPE_CHECKING:
    from dryfit.answers.pruning import Pruning
    from dryfit.builder.config.builder_config import BuilderConfig
    from dryfit.network.network import Network

SPARSITY = ("disable", "enable", "force")

sparsity_options: list[Callable[[Any], Any]] = [
    click.option(
        "--sparsity",
        type=click.Choice(SPARSITY),
        default="disable",
        show_default=True,
        help="Whether zeros of weights are skipped where a device does that: disable, enable, or force, which prunes a "
        "copy of the weights first. It changes estimates; force changes results too.",
    )
]


def take_sparsity(sparsity: str, network: Network, config: BuilderConfig) -> None:
    """Set the flag and, where it is forced, prune the weights of a network that was read for this command.

    Raises:
        DryfitError: the network cannot be assessed, to find out what would gain.
    """
    from dryfit.builder.config.enumerations import BuilderFlag

    if sparsity == "disable":
        return
    config.set_flag(BuilderFlag.SPARSE_WEIGHTS)
    if sparsity == "force":
        from dryfit.answers.pruning import ACCURACY, plan_pruning

        with log_to_stderr(None):  # the command's own run says it all
            pruning = plan_pruning(network, config)
        pruning.apply(network)
        print_note(f"--sparsity force: {pruning_text(pruning)}. {ACCURACY if pruning.pruned else ''}".rstrip())


def pruning_text(pruning: Pruning) -> str:
    """How much was pruned, in words."""
    if not pruning.pruned:
        reason = "all that would gain is sparse already" if pruning.already else "no layer would gain"
        return f"nothing was pruned, because {'weights were left' if pruning.left else reason}"
    layers = sum(len(one.layers) for one in pruning.pruned)
    zeroed, all_weights = (sum(one.zeroed for one in pruning.pruned), sum(one.after.size for one in pruning.pruned))
    return f"{zeroed:,} of {all_weights:,} weights of {count_text(layers, 'layer')} were made 0 in a copy"
