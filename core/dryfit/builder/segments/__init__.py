"""A device's segments: compiling, pools, cost, standalone loadables and their export."""
