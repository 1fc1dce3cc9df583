"""From a Python function to machine code that is kept on disk: tiers, vectors, the compiler and its cache."""
