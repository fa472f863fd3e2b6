"""Derives the objects that an API server and its controllers would make: admitted pods and claims, and workloads' pods.

Questions are asked about the pods that will exist, not about templates. Every derivation is written here once, as a
pure function of manifests, for all questions; `docs/questions.md` lists them. Never does I/O and never places a pod.
"""
