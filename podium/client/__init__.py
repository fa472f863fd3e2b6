"""The connection to one API server.

Owns sessions, connections, credentials, reflectors and informers, and the order in which writes are sent. Never decides
anything about a pod.
"""
