"""Running a network on samples to find dynamic ranges, in one process or distributed over several."""
