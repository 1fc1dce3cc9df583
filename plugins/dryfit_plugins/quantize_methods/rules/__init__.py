"""Rules of the methods, by family of operators and library; a method is their concatenation."""
