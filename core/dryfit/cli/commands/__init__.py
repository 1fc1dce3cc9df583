"""The commands: each file is one, of its own name with `-` for `_`, and is found by being here."""
