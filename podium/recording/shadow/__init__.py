"""What podium would have done beside another scheduler, pod by pod, without writing anything.

Owns the comparison of a binding with podium's own evaluation (`comparison`), the states that the other scheduler may
have seen instead (`hindsight`), and the process that follows a cluster (`app`). Never writes to the cluster.
"""
