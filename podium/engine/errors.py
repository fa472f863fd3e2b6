"""Errors about objects, and about questions on them."""

from __future__ import annotations

from podium.lib.error_text import UserFacingError


class ClusterError(UserFacingError):
    """The cluster cannot carry out or answer what was asked. The message says why."""


class ManifestError(ClusterError):
    """An object cannot be read. The message names the object and the field."""


class NoObjectError(ManifestError):
    """What stands where objects of a cluster are expected is something else. Files of a directory may hold such."""


class KubeconfigGivenError(NoObjectError):
    """A kubeconfig stands where objects are expected."""
