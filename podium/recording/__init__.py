"""Records the inputs and decisions of a scheduler, and replays them.

Owns the files of a recording (`segments`), their content (`entries`), how a running scheduler writes them (`recorder`),
and how they are replayed (`replay_inputs`, `replay_loop`, `replay`, by a scheduler within a `replay_boundary`),
compared (`comparison`) and shown (`trace`). Never decides: a replay runs the daemon's own queue, cache, loop and
engine. Never talks to an API server.
"""
