"""One profile as it runs: its plugins built, in order, and called."""
