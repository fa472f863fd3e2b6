"""The estimator as a gRPC server that Karmada's scheduler and descheduler ask.

Owns the wire, the member clusters' informers, and the order in which things start and stop. Estimates come from
`podium.estimator`. Needs the extra `[estimator]`.
"""
