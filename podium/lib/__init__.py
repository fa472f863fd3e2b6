"""Small things that could be packages of their own: clock, heap, state tables, stories. Know nothing of Kubernetes."""
