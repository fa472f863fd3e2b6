"""Kubernetes objects as immutable values: their types, and the meaning of their fields.

Owns decoding, quantities, selectors, requests, names, times, and the errors that an API server answers with. Everything
here is a pure function or an immutable value. Never does I/O and never keeps state.
"""
