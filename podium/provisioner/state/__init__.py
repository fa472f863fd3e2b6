"""The cluster that planning reads: nodes with their NodeClaims and pods, and what may be evicted from them.

Owns reading and checking of objects. Never changes one, and plans nothing.
"""
