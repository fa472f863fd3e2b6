"""The feature gates of a release under `--emulated-version` and `--min-compatibility-version`.

Emulating an older minor changes feature gates only: stages, defaults and which may be set. Every other rule stays.

Source: component-base/compatibility, component-base/featuregate (kube-scheduler 1.37.2)
Differs: only minors whose gates podium knows can be emulated.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from podium.config.feature_gates import FeatureGateError
from podium.config.releases import RELEASES, Gate, Release, Stage

_OLDER_MINORS: Final = 3
"""How many minors back a release can emulate."""
_VERSION: Final = re.compile(r"(?:kube=)?1\.(\d{1,3})")


def emulating(release: Release, emulated: str = "", min_compatible: str = "") -> Release:
    """Return the release with the gates of the emulated version.

    Args:
        emulated: a version as major.minor, also after `kube=`; by default the release's own.
        min_compatible: the oldest version of other components, by default the minor before the emulated one.

    Raises:
        FeatureGateError: the versions do not fit together, or podium does not know their gates.
    """
    own = _minor_of(release.minor)
    floor, emulated_minor = own - _OLDER_MINORS, _minor_of(emulated or release.minor)
    min_minor = _minor_of(min_compatible) if min_compatible else max(emulated_minor - 1, floor)
    if not floor <= emulated_minor <= own:
        raise FeatureGateError([f"emulation version 1.{emulated_minor} is not between [1.{floor}, 1.{own}.0]"])
    if not floor <= min_minor <= emulated_minor:
        raise FeatureGateError(
            [f"minCompatibilityVersion version 1.{min_minor} is not between [1.{floor}, 1.{emulated_minor}]"]
        )
    older = release if emulated_minor == own else RELEASES.get(f"1.{emulated_minor}")
    if older is None:
        raise FeatureGateError(
            [f"emulation version 1.{emulated_minor}: podium knows the gates of {', '.join(RELEASES)}"]
        )
    if older.minor == release.minor:
        on_gates = {
            name: replace(gate, default=True)
            for name, gate in release.gates.items()
            if gate.on_with and min_minor >= _minor_of(gate.on_with)
        }
        return replace(release, gates=MappingProxyType({**release.gates, **on_gates})) if on_gates else release
    unborn = Gate(
        Stage.PRE_ALPHA, default=False, emulated=f"1.{emulated_minor}, min compatibility version 1.{min_minor}"
    )
    gates = {name: older.gates.get(name, unborn) for name in release.gates}
    return replace(release, gates=MappingProxyType(gates))


def _minor_of(version: str) -> int:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise FeatureGateError([f"invalid version {version!r}: expected major.minor, such as {next(iter(RELEASES))}"])
    return int(match[1])
