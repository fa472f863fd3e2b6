"""Plugins of users: finding them by name, and importing only files that no other user can change."""
