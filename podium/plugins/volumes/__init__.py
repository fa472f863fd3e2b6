"""Shared code of the volume plugins: claims of pods, volumes for claims, translation of in-tree volumes to CSI.

Owns no policy: verdicts and their messages are in the plugins. Never talks to the API server except through the client
that it is given.
"""
