"""What decides for a running cluster or a command: Karpenter's simulation, or podium's own plugins.

Owns plans by podium's own rules. Never prints one.
"""
