"""The running scheduler: turns decisions into API requests, and cluster changes into new attempts.

Owns the wiring (`app`), the scheduling loop, the handling of failed attempts, the informers' handlers, the endpoints
and the shutdown. Never decides where a pod goes: `framework.cycle.schedule` does.
"""
