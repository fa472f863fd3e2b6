"""`podium demo`: creates a cluster, runs the scheduler, and shows the progress and the result."""

from podium.cli.demo.main import command

__all__ = ["command"]
