"""`podium provisioner run`: the loops that watch a cluster, plan, and ask a provider for nodes.

All I/O of the provisioner is here. Plans are made in the rest of `podium.provisioner`, which does not know of it.
"""
