"""Karmada's division of a workload over member clusters: which of them, and how many replicas each.

Owns the decision of one scheduling attempt: filters, selection by spread constraints, and assignment. It is a pure
function of the clusters, the available replicas and a binding. Never asks an estimator server, never writes a binding.
"""
