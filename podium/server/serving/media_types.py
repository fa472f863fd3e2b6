"""Which form of the metrics a request prefers."""

from __future__ import annotations

from typing import Final

_OPEN: Final = "application/openmetrics-text"
_TEXT: Final = "text/plain"
_VERSIONS: Final = ("", "0.0.1", "1.0.0")


def prefers_open_metrics(accept: str) -> bool:
    """Whether OpenMetrics is named in the header `Accept`, and no less wanted than the text format.

    Prometheus names the newest version first and the text format last; whatever else it names is not served.
    """
    qualities = {_OPEN: 0.0, _TEXT: 0.0}
    for clause in accept.split(","):
        media, *fields = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in fields if "=" in part)
        if media in qualities and (media == _TEXT or parameters.get("version", "") in _VERSIONS):
            qualities[media] = max(qualities[media], _weight(parameters.get("q", "1")))
    return 0 < qualities[_OPEN] >= qualities[_TEXT]


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
