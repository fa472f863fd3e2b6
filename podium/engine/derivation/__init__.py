"""The objects that an API server and its controllers would make: admitted pods and claims, and the pods of workloads.

Questions are asked about the pods that will exist, not about templates. What is derived is written here once, as pure
functions of manifests, for all questions alike; `docs/questions.md` lists it. Never does I/O and never places a pod.
"""
