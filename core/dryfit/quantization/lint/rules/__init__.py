"""The rules of the lint, one a module; `dryfit.quantization.lint.catalogue` finds them."""
