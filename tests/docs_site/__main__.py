"""`python -m tests.docs_site [--out FOLDER]` builds the documentation, without a warning, into build/docs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.docs_site.site import ROOT, build


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.docs_site", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="where the site is put")
    out = parser.parse_args().out.resolve()
    build(out.with_name(f"{out.name}-source"), out)
    sys.stdout.write(f"{out / 'index.html'}\n")


if __name__ == "__main__":
    main()
