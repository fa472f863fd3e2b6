"""What a long-running server needs: HTTPS endpoints, authentication and authorization, and leader election.

Owns TLS, who may ask for what, health, and the Lease. Never knows what is scheduled.
"""
