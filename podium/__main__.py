"""`python -m podium` is the `podium` command.

Python looks for modules in the current directory first. Beside a recording or a dump from elsewhere, that directory may
hold a file with the name of a module, or the metadata of a package. The command `podium` does not look there; neither
does this one, unless podium itself lies there.
"""

import os
import sys

import podium

if __name__ == "__main__":
    directory = os.getcwd()
    if not sys.flags.safe_path and sys.path[0] == directory != os.path.dirname(os.path.dirname(podium.__file__)):
        del sys.path[0]

from podium.cli.main import main

if __name__ == "__main__":
    main()
