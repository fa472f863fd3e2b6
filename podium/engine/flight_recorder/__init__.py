"""The flight recorder: the last scheduling attempts in columns, bounded in bytes.

Owns what is kept of an attempt, in which form, and what is dropped first. It observes attempts as an `AttemptObserver`
and keeps references to the attempt's own results; text is made only on read. Never changes an attempt, never does I/O.
"""

from podium.engine.flight_recorder.attempts import Details, RecordedAttempt, Result
from podium.engine.flight_recorder.observer import AttemptObserver
from podium.engine.flight_recorder.recorder import FlightRecorder

__all__ = ["AttemptObserver", "Details", "FlightRecorder", "RecordedAttempt", "Result"]
