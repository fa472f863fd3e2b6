"""Holds what a long-running process needs: HTTPS endpoints, authentication, authorization, leader election, signals and
supervised tasks.

Owns TLS, access control, health endpoints, the Lease, and how a process stops. Knows nothing about scheduling.
"""
