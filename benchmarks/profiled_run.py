"""podium as `podium run` starts it, under cProfile from the first scheduled pod until SIGTERM.

Run as a program: `python -m benchmarks.profiled_run OUTPUT [options of podium run]`. Start-up and sync are left out.
"""

from __future__ import annotations

import cProfile
import sys
import time
from collections.abc import Callable

from podium.cli import run
from podium.daemon.app import App


class ProfiledApp(App):
    """Begins the profile when everything is in sync."""

    # CPU time: by the clock, a write would include the time that the API server takes the core away.
    profile = cProfile.Profile(time.thread_time)

    async def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        def started_with_profile() -> None:
            on_start()
            self.profile.enable()

        await super().run(started_with_profile)
        self.profile.disable()


def main() -> None:
    """Write the profile when podium has ended."""
    import podium.daemon.app as app

    output, *options = sys.argv[1:]
    app.App = ProfiledApp  # type: ignore[misc]  # the command imports it when it runs
    try:
        run.command.main(options, standalone_mode=False)
    finally:
        ProfiledApp.profile.dump_stats(output)


if __name__ == "__main__":
    main()
