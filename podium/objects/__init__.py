"""Kubernetes objects as values: their types, and what their fields mean.

Owns decoding, quantities, selectors, requests, names, times, and the errors that an API server answers with. Everything
here is a pure function or an immutable value. Never does I/O and never keeps state.
"""
