"""Logging: one line per entry, JSON for machines or coloured text for a terminal, on standard error.

Owns structlog's configuration, the bridge from the standard library's loggers, and verbosity. Never logs a secret:
values whose key suggests a secret are replaced, and so are bearer tokens and passwords of URLs in text.

Each module writes `log = get_logger("queues")` (`lib.log`) and calls `log.info("Pod moved", pod=…)`. The configuration
may be changed at any time, and applies to existing loggers too. structlog calls the message `event`, so a cluster event
is logged as `cluster_event`.

Cost: like a plain structlog line with orjson, 4-8 us, and one write for all lines of 10 ms; a suppressed debug line
costs 0.2 us if `log` is bound, 1.2 us if it is the module's.
Differs: the default format is JSON, not klog's text; `-v` has only two effects: info, and debug from 4 on.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, BinaryIO, Final, Literal, cast

import orjson
import structlog
from structlog.typing import Processor, WrappedLogger

from podium.lib.log_text import REDACTED, printable_value, without_middle, without_user_info
from podium.lib.printable import printable, printable_json, printable_lines
from podium.telemetry.log_writer import LogWriter

Form = Literal["json", "console"]

VERBOSITY_DEFAULT: Final = 2
VERBOSITY_MAX: Final = 10
FLUSH_S_MAX: Final = 2.0
"""The end of the process waits at most this long until the log is written."""

_EXCEPTION_LENGTH_MAX: Final = 16_384
"""Of a traceback. One of nested groups, of a chain of causes or with a giant text could have any length."""
_DEBUG_FROM = 4
_FOREIGN_INFO_FROM = 4
_FOREIGN_DEBUG_FROM = 6

_SECRET_KEY = re.compile(r"authorization|token|passw|secret|cookie|credential|bearer|(private|api|client|tls)_?key")
_BEARER = re.compile(r"(?i)\b(bearer)\s+[\w.~+/=-]+")

_WITHOUT_BEARER = rf"\1 {REDACTED}"
_KEYS_MAX = 4096
_NUMBERS = frozenset({int, float, bool, type(None)})
_PLAIN = _NUMBERS | {str, datetime}

_Filtering: Any = structlog.make_filtering_bound_logger(logging.DEBUG)


class _Logger(_Filtering):  # type: ignore[misc]
    """structlog's filtering logger, except that debug lines can be switched on and off at run time."""

    verbosity = VERBOSITY_DEFAULT

    def info(self, event: str, *args: Any, **values: Any) -> Any:
        """Log at info level as structlog does, in fewer steps: each bound pod is such a line."""
        if args:
            return super().info(event, *args, **values)
        entry: Any = {**self._context, **values, "event": event}
        try:
            for process in self._processors:
                entry = process(self._logger, "info", entry)
        except structlog.DropEvent:
            return None
        return self._logger.info(entry)

    def debug(self, event: str, *args: Any, **values: Any) -> Any:
        """Log at debug level, from verbosity 4 on."""
        if _Logger.verbosity >= _DEBUG_FROM:
            return super().debug(event, *args, **values)
        return None


class _Sink:
    """The destination of all lines. Loggers keep a reference to it, so that the stream can be replaced later.

    Standard error is written by a separate thread, a stream that was passed in directly.
    """

    stream: BinaryIO | None = None
    writer: LogWriter | None = None

    def msg(self, line: bytes) -> None:
        """Write one line."""
        if self.stream is not None:
            try:
                self.stream.write(line + b"\n")
                self.stream.flush()
            except OSError:
                # The reader is gone: there is nowhere to report that, and no reason to stop.
                pass
        elif self.writer is not None:
            self.writer.put(line + b"\n")

    debug = info = warning = error = msg

    def critical(self, line: bytes) -> None:
        """Write a line that must get out even if others are lost."""
        if self.stream is None and self.writer is not None:
            self.writer.put(line + b"\n", is_critical=True)
        else:
            self.msg(line)

    def to_standard_error(self) -> None:
        """Write to standard error from now on; nowhere if it is closed."""
        self.stream = None
        try:
            descriptor = sys.stderr.fileno()
        except (AttributeError, OSError, ValueError):
            # Standard error is closed, or was replaced by an in-memory stream.
            self.stream = getattr(sys.stderr, "buffer", None)
            return
        if self.writer is None or self.writer.descriptor != descriptor:
            self.writer = LogWriter(descriptor, _lost_lines_note)
            atexit.register(self.writer.flush, FLUSH_S_MAX)


class _Bridge(logging.Handler):
    """Forwards the log records of libraries that use the standard library's logging."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record under its logger's name."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            # The library's format does not match its arguments: report it as the standard library does.
            self.handleError(record)
            return
        level = min(record.levelno // 10 * 10, logging.CRITICAL)
        logger = structlog.get_logger(component=record.name)
        # Straight to `log`: the level of the record's own logger has already filtered it.
        logger.log(max(level, logging.DEBUG), message, exc_info=record.exc_info or None)


_sink = _Sink()
_processors: list[Processor] = []


def configure(*, form: Form | None = None, verbosity: int = VERBOSITY_DEFAULT, stream: BinaryIO | None = None) -> Form:
    """Set up logging for the whole process; may be called again.

    The console form has colours on a terminal, unless NO_COLOR is set to anything (https://no-color.org).

    Args:
        form: by default, console if the stream is a terminal, else JSON.
        verbosity: see `set_verbosity`.
        stream: standard error by default.

    Returns: the form.
    """
    if stream is None:
        _sink.to_standard_error()
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
    else:
        _sink.stream = stream
        is_terminal = stream.isatty()
    if form is None:
        form = "console" if is_terminal else "json"
    # Modified in place: loggers that are in use hold a reference to this list.
    colors = is_terminal and not os.environ.get("NO_COLOR")
    _processors[:] = [_describe, _console(colors=colors) if form == "console" else _to_json]
    structlog.configure(
        processors=_processors,
        wrapper_class=_Logger,
        logger_factory=lambda *_: _sink,
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Bridge)]:
        root.removeHandler(handler)
    root.addHandler(_Bridge())
    set_verbosity(verbosity)
    return form


def lines_lost() -> int:
    """Return the number of lines lost because the log was not read or could not be written."""
    return 0 if _sink.writer is None else _sink.writer.lost_count


def lines_waiting() -> float:
    """Return the fraction of the space for pending lines that is used; 1 is full."""
    return 0.0 if _sink.writer is None else _sink.writer.fill


def flush(seconds_max: float = FLUSH_S_MAX) -> bool:
    """Wait, at most for that long, until every line is written or cannot be, and return whether all are written."""
    return _sink.stream is not None or _sink.writer is None or _sink.writer.flush(seconds_max)


def verbosity() -> int:
    """Return the current verbosity, for code that must do work to produce a line."""
    return _Logger.verbosity


def set_verbosity(level: int) -> None:
    """Set the verbosity: info lines are always logged, debug lines from 4 on.

    Loggers of libraries log warnings, info from 4 on, and debug from 6 on.

    Raises: ValueError for a level outside 0..10.
    """
    if not 0 <= level <= VERBOSITY_MAX:
        raise ValueError(f"verbosity must be between 0 and {VERBOSITY_MAX}, not {level}")
    _Logger.verbosity = level
    foreign = logging.WARNING
    if level >= _FOREIGN_INFO_FROM:
        foreign = logging.DEBUG if level >= _FOREIGN_DEBUG_FROM else logging.INFO
    logging.getLogger().setLevel(foreign)
    # Its debug lines contain response bodies, which can hold credentials.
    logging.getLogger("kubernetes_asyncio").setLevel(max(foreign, logging.INFO))


def _lost_lines_note(lines: int) -> bytes:
    """Return the log line that takes the place of lost lines."""
    entry: Any = {
        "event": "Log lines were lost here: they were not read, or could not be written",
        "component": "telemetry",
        "lines": lines,
    }
    for process in _processors:
        entry = process(None, "warning", entry)
    return cast(bytes, entry) + b"\n"


def _describe(_: WrappedLogger, method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add time and level, remove secrets, format an exception as text."""
    if "exc_info" in entry:
        entry = structlog.processors.format_exc_info(_, method, entry)
        text = entry.get("exception", "")
        if len(text) > _EXCEPTION_LENGTH_MAX:
            # A secret that is cut in two would not be recognized.
            entry["exception"] = without_middle(_without_secrets(text), _EXCEPTION_LENGTH_MAX)
    record: dict[str, Any] = {"ts": datetime.now(UTC), "level": method, "msg": entry.pop("event")}
    record.update(entry)
    if _is_plain(record):
        return record
    for key, value in record.items():
        if _is_secret_key(key):
            record[key] = REDACTED
        elif type(value) is str:
            if _may_hold_secret(value):
                record[key] = _without_secrets(value)
        elif type(value) not in _NUMBERS:
            record[key] = _without_secrets(value)
    return record


def _is_plain(entry: Mapping[str, Any]) -> bool:
    """Return True if the entry certainly holds no secret, as most do. Cost: a quarter of a look at each value."""
    values = entry.values()
    if not _PLAIN.issuperset(map(type, values)) or _has_secret_key(tuple(entry)):
        return False
    return not _may_hold_secret("\n".join([value for value in values if type(value) is str]))


def _to_json(_: WrappedLogger, __: str, entry: MutableMapping[str, Any]) -> bytes:
    try:
        return printable_json(orjson.dumps(entry, default=str, option=orjson.OPT_UTC_Z))
    except TypeError:
        # Lone surrogates and integers beyond 64 bits: rare, and the line must not be lost.
        return json.dumps(entry, default=str).encode()


def _console(*, colors: bool) -> Processor:
    renderer = structlog.dev.ConsoleRenderer(
        colors=colors,
        timestamp_key="ts",
        event_key="msg",
        pad_event_to=0,
        exception_formatter=structlog.dev.plain_traceback,
    )

    def render(logger: WrappedLogger, method: str, entry: MutableMapping[str, Any]) -> bytes:
        record = {printable(key): printable_value(value) for key, value in entry.items()}
        record["ts"] = f"{entry['ts'].astimezone():%H:%M:%S.%f}"[:-3]
        if "exception" in entry:
            record["exception"] = printable_lines(str(entry["exception"]))
        return renderer(logger, method, record).encode(errors="backslashreplace")

    return render


def _without_secrets(value: Any) -> Any:
    """Return the value with secrets replaced, at any depth."""
    if isinstance(value, str):
        return without_user_info(_BEARER.sub(_WITHOUT_BEARER, value))
    if isinstance(value, Mapping):
        return {key: REDACTED if _is_secret_key(str(key)) else _without_secrets(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(item) for item in value]
    return value


@lru_cache(maxsize=_KEYS_MAX)
def _is_secret_key(key: str) -> bool:
    """Return True if the key suggests a secret. Cached: keys are words of the source code, so there are few."""
    return _SECRET_KEY.search(key.lower().replace("-", "_")) is not None


@lru_cache(maxsize=_KEYS_MAX)
def _has_secret_key(keys: tuple[str, ...]) -> bool:
    """Return True if one of an entry's keys suggests a secret. Cached: lines of one kind have the same keys."""
    return any(map(_is_secret_key, keys))


def _may_hold_secret(text: str) -> bool:
    """Return True if the text has to be searched for tokens and passwords of URLs."""
    return "earer " in text or "EARER " in text or "://" in text
