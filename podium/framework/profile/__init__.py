"""A running profile: its plugins are constructed, ordered and called here."""
