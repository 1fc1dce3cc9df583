"""Plugins that come with dryfit, through the same entry points as a stranger's."""
