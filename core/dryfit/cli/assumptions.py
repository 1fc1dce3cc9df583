"""What `dryfit explain` takes where nothing was said."""

from __future__ import annotations

import attrs

from dryfit.cli.network_options import NetworkOptions

ASSUMED_PRECISION, QUANTIZED_PRECISION, ASSUMED_FALLBACK = "fp16", "int8", "GPU"


def assumptions(options: NetworkOptions, precision: str | None = ASSUMED_PRECISION) -> tuple[NetworkOptions, list[str]]:
    """The options with what is taken where nothing was said, and that in words.

    A DLA computes no FP32, so that without a precision every layer would leave for that alone.

    Args:
        options: what was said.
        precision: what is taken where no precision was named, and the network is not strongly typed; None for none.
    """
    assumed = []
    if not options.precisions and precision is not None and not options.strongly_typed:
        options = attrs.evolve(options, precisions=(precision,))
        assumed.append(f"precision {precision}")
    if options.fallback is None and options.device.upper() != ASSUMED_FALLBACK:
        options = attrs.evolve(options, fallback=ASSUMED_FALLBACK)
        aside = " (a standalone loadable has none: it is there to show what would leave)"
        assumed.append(f"fallback {ASSUMED_FALLBACK}{aside if options.engine.has_no_fallback else ''}")
    return options, assumed
