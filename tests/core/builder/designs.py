"""Decisions for a small network, as the builder's stages before kernels make them."""

from __future__ import annotations

from dryfit import building


def designed(network, config):
    return building.designed(network, config, "test")


def lowered(network, config):
    return designed(network, config).cut.lowered
