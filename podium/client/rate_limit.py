"""The client-side rate limit.

Owns the token bucket. Never waits: it returns how long to wait, and the dispatcher waits.
"""

from __future__ import annotations

from podium.lib.clock import Clock

_DEFAULT_QPS = 5.0
_DEFAULT_BURST = 10


class TokenBucket:
    """A token bucket: allows `burst` requests at once and `qps` per second in the long run.

    Source: client-go v0.36 rest/config.go and util/flowcontrol/throttle.go.
    Differs: a caller takes a token when there is one instead of reserving it ahead, so that a later binding can still
    overtake a waiting Event.
    """

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        assert qps > 0, "a bucket that never fills"
        assert burst > 0, "a bucket that holds nothing"
        self._qps = qps
        self._burst = float(burst)
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at_s = clock.monotonic()

    @classmethod
    def for_client(cls, qps: float, burst: int, clock: Clock) -> TokenBucket | None:
        """Return the bucket for a `clientConnection`, in which 0 means client-go's default.

        None, if `qps` is negative, means no limit.
        """
        if qps < 0:
            return None
        return cls(qps or _DEFAULT_QPS, burst or _DEFAULT_BURST, clock)

    def try_take(self) -> float:
        """Take a token. Returns 0.0, or the seconds until there will be a token."""
        now_s = self._clock.monotonic()
        tokens = min(self._burst, self._tokens + (now_s - self._filled_at_s) * self._qps)
        self._filled_at_s = now_s
        # Rounding errors of many small refills may leave slightly less than a whole token.
        if tokens >= 1.0 - 1e-9:
            self._tokens = max(0.0, tokens - 1.0)
            return 0.0
        self._tokens = tokens
        return (1.0 - tokens) / self._qps
