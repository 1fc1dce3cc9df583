"""Steps that give a network its accuracy back in INT8, each judged on samples that are held back."""
