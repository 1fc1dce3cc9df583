"""What a build is told: flags, devices, memory, profiles and the settings that follow from them."""
