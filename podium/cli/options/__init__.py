"""Options that several commands have, and what their values mean."""
