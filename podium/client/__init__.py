"""The connection to one API server.

Owns sessions, connections, credentials, reflectors and informers, and the order in which writes go out. Never decides
anything about a pod: it keeps objects current and carries requests.
"""
