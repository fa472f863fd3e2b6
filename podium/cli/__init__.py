"""The `podium` command: arguments, what the terminal shows, and the choice of the event loop. Decides nothing."""
