"""What a scheduler saw, read and decided, kept so that it can be decided again.

Owns the files of a recording (`segments`). Never decides, never talks to an API server.
"""
