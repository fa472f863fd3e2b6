"""Client-side rate limit.

Owns the token bucket. Never waits: it says how long to wait, and the dispatcher does.
"""

from __future__ import annotations

from podium.lib.clock import Clock

_DEFAULT_QPS = 5.0
_DEFAULT_BURST = 10


class TokenBucket:
    """Lets `burst` requests through at once and `qps` per second in the long run.

    Source: client-go v0.36 rest/config.go and util/flowcontrol/throttle.go.
    Differs: a caller takes a token when it is there instead of reserving one ahead, so that a binding that comes later
    can still go before an Event that is waiting.
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
        """The bucket for a `clientConnection`: zero means client-go's default, negative qps no limit."""
        if qps < 0:
            return None
        return cls(qps or _DEFAULT_QPS, burst or _DEFAULT_BURST, clock)

    def try_take(self) -> float:
        """Take a token: 0.0, or, where there is none, the seconds until there will be one."""
        now = self._clock.monotonic()
        tokens = min(self._burst, self._tokens + (now - self._filled_at_s) * self._qps)
        self._filled_at_s = now
        # The sum of many small refills may end a hair below the whole token it stands for.
        if tokens >= 1.0 - 1e-9:
            self._tokens = max(0.0, tokens - 1.0)
            return 0.0
        self._tokens = tokens
        return (1.0 - tokens) / self._qps
