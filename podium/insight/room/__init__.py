"""Makes room for a pod or a gang by moving other pods, and finds the order in which nodes are drained.

Owns which pods may move (`movable`), the search for the fewest moves (`model`, `search`, `sequences`), and their
rehearsal with controllers and the real scheduler (`rehearsal`). All of it is pure, except that `carrying_out` evicts
pods of a running cluster.
"""
