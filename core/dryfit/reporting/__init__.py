"""Reports: the answers about one model as one HTML page, and about many models as a small site."""
