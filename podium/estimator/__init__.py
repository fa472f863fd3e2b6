"""How many replicas a member cluster has room for: Karmada's replica estimates, from podium's columns.

Owns the estimates: pure functions of a snapshot and a request. Never reads a clock, never talks to an API server.
"""
