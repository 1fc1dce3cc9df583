"""Decisions for a small network, as the builder's stages before kernels make them."""

from __future__ import annotations

from dryfit.builder.design import NUM_STAGES, design_network
from dryfit.builder.stages import Stages


def designed(network, config):
    with Stages("test", NUM_STAGES) as stages:
        return design_network(network, config, stages)


def lowered(network, config):
    design = designed(network, config)
    return design.cut.lowered
