"""The client of estimator servers, Karmada's and podium's alike: many members are asked at once.

Owns connections, deadlines and the bytes of requests. Never decides what the answers mean.
"""
