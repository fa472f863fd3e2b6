"""Plugins of users: finding them by name, and importing only files that nobody else can change."""
