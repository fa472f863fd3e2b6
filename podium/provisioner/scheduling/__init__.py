"""The demands of a pod on a node, as values: requirements on labels, taints, ports, volumes and amounts.

Owns the arithmetic of demands. Never places a pod.
"""
