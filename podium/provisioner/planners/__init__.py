"""Plans for a running cluster or a command, by Karpenter's simulation or by podium's own plugins.

Owns plans by podium's own rules. Never prints one.
"""
