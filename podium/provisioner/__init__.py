"""Which nodes to buy for pending pods, and which nodes to let go, decided as Karpenter 1.15 decides.

Owns the decisions: requirements on labels, instance types with their prices, catalogues of them, where waiting pods go
and which nodes are bought for them, disruption budgets, and the batching window. Pure: does no I/O, reads no clock that
was not passed in, and never changes a cluster or talks to a cloud provider.
"""
