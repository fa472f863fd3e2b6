"""Measures podium beside kube-scheduler on the same API server, and its engine without one.

Owns workloads, sizes and reports. Nothing in podium knows about it, and it changes nothing in podium to be measured.
"""
