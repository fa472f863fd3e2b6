"""Runs a scheduler as one member of a group of shards: `podium.shards` decides, and this carries it out.

Owns the pace of the protocol, which pods the queue holds, and what is written into pods that other members have to
decide on. Imported only with `podium run --shards`.
"""
