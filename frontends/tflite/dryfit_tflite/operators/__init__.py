"""The functions that import operators: one file per family."""
