"""Letting go: which nodes may be removed or replaced, at what cost, and what the cluster is like afterwards.

Owns Karpenter's methods and the searches beyond them. Never carries a command out.
"""
