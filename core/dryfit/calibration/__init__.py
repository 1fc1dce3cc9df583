"""Running a network over samples to find dynamic ranges, in one process or shared out over many."""
