"""What a scheduler saw, read and decided, kept so that it can be decided again.

Owns the files of a recording (`segments`), what is in them (`tape`), how a running scheduler writes them (`recorder`)
and how they are replayed (`player`, `replay_loop`, `replay`, by a scheduler in other `surroundings`), compared
(`comparison`) and shown (`trace`). Never decides: a replay runs the daemon's own queue, cache, loop and engine. Never
talks to an API server.
"""
