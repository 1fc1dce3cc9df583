"""TensorRT's Python surface as data: what each version has, with which values, and what of it has no effect here."""
