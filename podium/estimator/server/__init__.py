"""The estimator as a gRPC server for Karmada's scheduler and descheduler.

Owns the wire format, the member clusters' informers, and the start and stop order. Estimates come from
`podium.estimator`. Needs the extra `[estimator]`.
"""
