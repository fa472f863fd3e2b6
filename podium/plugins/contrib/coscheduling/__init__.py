"""Gangs as scheduler-plugins has them: pods with a label, and PodGroups of `scheduling.x-k8s.io`."""
