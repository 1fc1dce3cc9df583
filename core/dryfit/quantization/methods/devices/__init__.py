"""Methods of the devices that are simulated: what they have in common."""
