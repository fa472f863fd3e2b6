"""The functions that selectors may call, a module for each subject. Each has a tuple `OVERLOADS`."""
