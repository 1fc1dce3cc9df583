"""Calibrators, one file each."""
