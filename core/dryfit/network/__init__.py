"""The intermediate representation: data types, tensors, layers, network. Knows no device."""
