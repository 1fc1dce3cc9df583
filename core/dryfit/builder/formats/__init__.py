"""Formats of tensors between devices: which are chosen, where one is changed into another, and why."""
