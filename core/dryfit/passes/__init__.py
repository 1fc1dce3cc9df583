"""Rewrites of a network, one pass a file, and the pipeline that runs them."""
