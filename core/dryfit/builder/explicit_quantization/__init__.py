"""Networks that carry their own Q/DQ layers: the rules of their mode, and what became of each."""
