"""Karmada's replica estimates: how many replicas fit into a member cluster, computed from podium's columns.

Owns the estimates: pure functions of a snapshot and a request. Never reads a clock, never talks to an API server.
"""
