"""podium: a Kubernetes scheduler in Python that decides as kube-scheduler does, with policy in one file."""

__version__ = "0.1.0"
