"""`python -m podium` is the `podium` command.

Python looks for modules in the current directory first, in which a recording or a dump that somebody has sent may lie,
beside a file with the name of a module, or one that says that a package is installed there. The command `podium` does
not look there; so neither does this one, unless podium itself lies there.
"""

import os
import sys

import podium

if __name__ == "__main__":
    here = os.getcwd()
    if not sys.flags.safe_path and sys.path[0] == here != os.path.dirname(os.path.dirname(podium.__file__)):
        del sys.path[0]

from podium.cli.main import main

if __name__ == "__main__":
    main()
