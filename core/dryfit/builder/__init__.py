"""From a network and a configuration to a plan: device assignment, partition, formats, memory plan, build."""
