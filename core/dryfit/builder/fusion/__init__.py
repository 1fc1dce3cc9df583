"""Layers that run as one operation."""
