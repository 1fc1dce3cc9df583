"""Warnings about options that trtexec reads otherwise than they may be meant."""

from __future__ import annotations

from collections.abc import Iterator

from dryfit.board.trtexec_arguments import TrtexecArguments
from dryfit.board.trtexec_parser import READS_UNITS, copied_shapes, sizes_without_units
from dryfit.board.trtexec_values import named_pairs
from dryfit.board.versions import Version, layers_by_name, plausible_name, version_text
from dryfit.builder.config.trtexec_spellings import parse_memory_pool_sizes
from dryfit.network.network import Network

_LISTS = ("--layerPrecisions", "--layerOutputTypes", "--layerDeviceTypes")


def remarks(read: TrtexecArguments, network: Network, software: Version) -> Iterator[str]:
    """Return a sentence for each option that is read otherwise than it may be meant."""
    for profile in read.profiles:
        for option, source in copied_shapes(profile).items():
            yield f"{option} is not given: the shapes of {source} are used"
    sizes = read.text("--memPoolSize")
    if software < READS_UNITS and sizes_without_units(sizes) != sizes:
        yield (
            f"TensorRT {version_text(software)} does not read units: "
            f"--memPoolSize={sizes} is {sizes_without_units(sizes)} in MiB"
        )
    elif sizes:
        yield from parse_memory_pool_sizes(sizes, "--memPoolSize").notes
    layers = layers_by_name(network)
    for option in _LISTS:
        for entry in dict.fromkeys(name for name, _ in named_pairs(read.text(option), option)):
            if not any(plausible_name(layer, [entry]) for layer in layers):
                yield f"{option} has an entry for {entry!r}, which is not the name of a layer"
