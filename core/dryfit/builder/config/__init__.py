"""The settings of a build: flags, devices, memory, profiles and the settings derived from them."""
