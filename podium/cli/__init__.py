"""The `podium` command: arguments, terminal output, and the choice of the event loop. Decides nothing."""
