"""Buying: which nodes are created for pending pods, by Karpenter's simulation, and where each pod goes.

Owns the simulation. Never removes a node.
"""
