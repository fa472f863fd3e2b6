"""Fleets: which of many member clusters takes a whole workload, decided with the scheduler's engine in each of them.

Owns the question, its pods, the order of the clusters, and the answer with its proof. Never writes to a cluster. All
but `server` is pure.
"""
