"""The records that a target is made of: target, limits, formats, memory pools, kernels, arithmetic, verdicts."""
