"""Planning preemption: candidates, victims and dry runs."""
