"""Syntax trees of the sources, made once for all tests that look at them."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    gc.freeze()  # it stays, and each search for garbage would look at all trees
    return tree


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the tree of a file, as `ast.walk` lists them."""
    return tuple(ast.walk(tree_of(path)))
