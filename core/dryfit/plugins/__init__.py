"""Discovery of targets and other plugins, and the typed facade over their hooks."""
