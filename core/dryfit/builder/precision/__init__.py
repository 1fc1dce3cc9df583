"""In which type each layer computes, and how it is lowered to INT8."""
