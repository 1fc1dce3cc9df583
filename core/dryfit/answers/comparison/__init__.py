"""Comparison of an engine with the same network in other arithmetic."""
