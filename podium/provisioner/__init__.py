"""Which nodes to buy for the pods that wait, and which nodes to let go, decided as Karpenter 1.15 decides.

Owns the decisions: requirements, instance types with their prices, and catalogues of them. Pure: does no I/O, reads no
clock that was not passed in, and never changes a cluster or talks to a cloud provider.
"""
