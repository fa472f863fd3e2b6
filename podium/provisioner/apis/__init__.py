"""Karpenter's own objects, as the API server has them: NodePools, NodeClaims, labels, and disruption budgets.

Owns the values and what is checked of each alone. Never looks at a pod beside a node.
"""
