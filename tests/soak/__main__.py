"""`python -m tests.soak --minutes 10`: pods and nodes come and go, and what the daemon holds must not grow.

The daemon is a process of its own against the sandbox, over HTTP. With `--record DIR` it records as well. With
`--in-process --pods 1000000` its parts run here, without a network, which goes through far more pods in the same time.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path

import click
import structlog

from tests.soak import in_process, over_http
from tests.soak.growth import HEADING, growth

_SAMPLES = 10


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    click.echo(HEADING)
    if options.in_process:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        samples = asyncio.run(in_process.run(options.pods, options.pods // _SAMPLES, click.echo))
    else:
        samples = asyncio.run(over_http.run(options.minutes * 60.0, _SAMPLES, click.echo, recording=options.record))
    findings = growth(samples)
    for finding in findings or ["nothing has grown"]:
        click.echo(finding)
    return int(bool(findings))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="over HTTP (default: %(default)s)")
    parser.add_argument("--record", metavar="DIR", type=Path, help="over HTTP; into this new directory")
    parser.add_argument("--in-process", action="store_true", help="without a network")
    parser.add_argument("--pods", type=int, default=1_000_000, help="with --in-process (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
