"""`python interrupted.py MODULE ARGUMENT...`: podium, which is sent SIGINT when it begins to import that module."""

import os
import signal
import sys

WHEN, *ARGUMENTS = sys.argv[1:]


class _Interrupt:
    """Looks at every import, and finds nothing."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == WHEN:
            os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from podium.cli.main import main

    sys.meta_path.insert(0, _Interrupt())
    main(ARGUMENTS)
