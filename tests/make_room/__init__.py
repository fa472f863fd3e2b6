"""Checks `podium make-room` on random clusters: its moves against brute force, and its plans in the sandbox."""
