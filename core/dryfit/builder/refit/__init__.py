"""New weights for an engine that is built: what may change, and building it again with the same decisions."""
