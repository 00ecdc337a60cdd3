"""The rules of the house, one module each. See tools/check."""
