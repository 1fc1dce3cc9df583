"""Rules of operators without weights: sums, averages, functions of codes, softmax, concatenation, resizing."""
