"""`podium demo`: the cluster it makes, the run, what it shows meanwhile, and how it went."""

from podium.cli.demo.main import command

__all__ = ["command"]
