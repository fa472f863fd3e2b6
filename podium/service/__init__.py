"""What a long-running server needs: HTTPS endpoints, authentication, authorization and leader election.

Owns TLS, access control, health endpoints and the Lease. Knows nothing about scheduling.
"""
