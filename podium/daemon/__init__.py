"""The running scheduler: what turns decisions into changes of a cluster, and changes into new attempts.

Owns the wiring (`app`), the scheduling loop, what follows a failed attempt, the informers' handlers, the endpoints and
the shutdown. Never decides where a pod goes: `framework.cycle.schedule` does.
"""
