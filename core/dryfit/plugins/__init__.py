"""Discovery of targets and other plugins, and the typed facade over their hooks."""

from dryfit.plugins.discovery import API_LEVEL as API_LEVEL
from dryfit.plugins.plugin_registry import registry as registry
