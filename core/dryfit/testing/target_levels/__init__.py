"""The levels of `TargetConformance`, one class a file; a young target can begin with the first of them."""
