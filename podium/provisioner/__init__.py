"""Plans the nodes to buy for pending pods and the nodes to let go, as Karpenter 1.15 decides.

Its rooms have Karpenter's package names, from bottom to top: `apis`, `scheduling`, `cloudprovider`, `state`,
`provisioning`, `disruption`, `planners`, `reports`, `controller`. A room imports only rooms before it. All but
`controller` is pure: it does no I/O, reads no clock that was not passed in, and never changes a cluster.
"""
