"""A kit for a board, its results beside what dryfit predicts, and what is learnt from them."""
