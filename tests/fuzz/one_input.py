"""Fuzz a parser or decoder, led by coverage (libFuzzer, through Atheris).

`python -m tests.fuzz.one_input TARGET [options of libFuzzer]` fuzzes one, with its seeds as the first inputs.
`python -m tests.fuzz.one_input --minutes 10` fuzzes each for so long, two at a time, and leaves findings in build/fuzz.
`python -m tests.fuzz.one_input --write-seeds FOLDER` writes seeds as OSS-Fuzz takes them (tests/fuzz/oss_fuzz.sh).
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import click

_ROOT: Final = Path(__file__).parents[2]
_INSTRUMENTED: Final = (
    *("podium.cel", "podium.client", "podium.config", "podium.lib", "podium.objects", "podium.sandbox"),
    *("podium.provisioner.apis", "podium.provisioner.cloudprovider", "podium.recording.columns"),
    "podium.recording.segments",
)
"""Where parsers and decoders are. Instrumenting all of podium takes minutes."""
_OPTIONS: Final = ("-timeout=25", "-rss_limit_mb=4096", "-max_len=65536", "-print_final_stats=1")


def fuzz(name: str, options: list[str]) -> None:
    """Fuzz one target until libFuzzer's options end it. Does not return."""
    import atheris

    with atheris.instrument_imports(include=list(_INSTRUMENTED)):
        from tests.fuzz.targets import TARGETS
    logging.disable(logging.CRITICAL)
    atheris.Setup([sys.argv[0], *options], TARGETS[name].run)
    atheris.Fuzz()


def fuzz_all(minutes: float, processes: int) -> list[str]:
    """Fuzz each target for some minutes, and return the names of those in which an input does harm."""
    from tests.fuzz.targets import TARGETS

    def run(name: str) -> bool:
        folder = _ROOT / "build/fuzz" / name
        for part in ("corpus", "findings"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(TARGETS[name].seeds()):
            (folder / "corpus" / f"seed-{number}").write_bytes(content)
        options = [*_OPTIONS, f"-max_total_time={minutes * 60:.0f}", f"-artifact_prefix={folder}/findings/"]
        command = [sys.executable, "-m", "tests.fuzz.one_input", name, *options, str(folder / "corpus")]
        with (folder / "log").open("wb") as log:
            status = subprocess.run(command, cwd=_ROOT, stdout=log, stderr=log, check=False).returncode
        click.echo(f"{name}: {_inputs(folder / 'log')} inputs, {'clean' if not status else f'see {folder}'}")
        return status != 0

    with ThreadPoolExecutor(processes) as pool:
        return [name for name, is_harmed in zip(TARGETS, pool.map(run, TARGETS), strict=True) if is_harmed]


def _inputs(log: Path) -> str:
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("stat::number_of_executed_units:"):
            return line.split()[-1]
    return "an unknown number of"


def write_seeds(folder: Path) -> None:
    """Write `fuzz_TARGET_seed_corpus.zip` for each target, and print the targets."""
    from tests.fuzz.targets import TARGETS

    folder.mkdir(parents=True, exist_ok=True)
    for name, target in TARGETS.items():
        click.echo(name)
        with zipfile.ZipFile(folder / f"fuzz_{name}_seed_corpus.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for number, content in enumerate(target.seeds()):
                archive.writestr(f"seed-{number}", content)


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--minutes", type=float, help="Fuzz each target for so long.")
@click.option("--processes", default=os.cpu_count() or 1, show_default=True, help="With --minutes: targets at a time.")
@click.option("--write-seeds", "seeds", type=click.Path(path_type=Path), help="Write the seeds into this folder.")
@click.argument("target", required=False)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(
    minutes: float | None, processes: int, seeds: Path | None, target: str | None, options: tuple[str, ...]
) -> None:
    """Fuzz TARGET with libFuzzer's OPTIONS, or each target."""
    if seeds is not None:
        write_seeds(seeds)
    elif target is not None:
        fuzz(target, list(options))
    elif names := fuzz_all(minutes or 1.0, processes):
        sys.exit(f"findings in: {', '.join(names)}")


if __name__ == "__main__":
    main()
