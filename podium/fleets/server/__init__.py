"""Watches many member clusters in one process, and answers over HTTP and gRPC which of them takes a whole workload.

Owns the members' informers, how fresh each member is, and both interfaces. Decides nothing. Needs the extra
`[estimator]`.
"""
