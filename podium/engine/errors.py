"""Errors about objects, and about questions on them."""

from __future__ import annotations

from podium.lib.error_text import UserFacingError


class ClusterError(UserFacingError):
    """A change or a question is not possible in this cluster. The message says why."""


class ManifestError(ClusterError):
    """An object cannot be read. The message names the object and the field."""


class NoObjectError(ManifestError):
    """The content is not an object of a cluster. Files of a directory may hold such content."""


class KubeconfigGivenError(NoObjectError):
    """A kubeconfig was given instead of objects."""
