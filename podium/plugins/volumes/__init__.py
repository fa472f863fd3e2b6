"""What the volume plugins share: claims of pods, volumes for claims, in-tree volumes seen as CSI ones.

Owns no policy: verdicts and their words are with the plugins. Never talks to the API server but through the client it
is given.
"""
