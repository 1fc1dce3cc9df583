"""What the DLA is estimated to take: formula, parameters, their fit to published figures, and the page about them."""
