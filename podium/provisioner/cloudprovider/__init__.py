"""Instance types with their offerings and prices, catalogues of them, and reservations.

Owns the choice among instance types. Never talks to a cloud provider.
"""
