"""An engine beside the same network in other arithmetic."""
