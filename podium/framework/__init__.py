"""The plugin contract and the pure algorithm: profiles, extension points, diagnosis.

One scheduling attempt is a synchronous, deterministic function of pod, snapshot, profile, clock and random source.
Never awaits, never does I/O, never reads a clock that was not passed in.
"""
