"""What a pod demands of a node, as values: requirements on labels, taints, ports, volumes and amounts.

Owns the arithmetic of demands. Never places a pod.
"""
