"""What benchmarks share: models, the runtimes that they are compared with, ratios, and the page of results."""
