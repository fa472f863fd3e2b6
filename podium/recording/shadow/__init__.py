"""Compares the bindings of another scheduler with podium's choices, pod by pod.

Owns the comparison of a binding with podium's own evaluation (`comparison`), the states that the other scheduler
may have decided on instead (`plausible_states`), and the process that follows a cluster (`app`). Never writes to the
cluster.
"""
