"""Placements proposed by estimated cost: cut, dynamic programming and repair, decided by the stages of a build."""
