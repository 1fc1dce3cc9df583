"""Rewrites of a network, passes that belong together in one file, and the pipeline that runs them."""
