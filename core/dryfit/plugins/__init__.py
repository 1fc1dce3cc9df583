"""Discovery of targets and other plugins, and the typed facade over their hooks."""

API_LEVEL = 1
"""The level of the plugin interface that this dryfit has.

It grows when something is added that a plugin may rely on. A plugin that needs it states the level in its module or top
package as `DRYFIT_API_LEVEL`; an older dryfit then says what is missing instead of failing somewhere.
"""
