"""The functions that selectors may call, one module per subject. Each module has a tuple `OVERLOADS`."""
