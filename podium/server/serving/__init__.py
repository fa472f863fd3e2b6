"""The HTTPS endpoints: health, metrics and the configuration in effect; pages over plain HTTP (`plain`).

Owns the listening socket, certificates, access control and the texts of health endpoints. Never decides whether
anything is healthy: the daemon or the estimator passes in the checks and the pages.
"""

from podium.server.serving.access import Access, open_access
from podium.server.serving.certificates import CertificateError, KeyPair, content_of, load, self_signed
from podium.server.serving.checks import failure
from podium.server.serving.followed_files import FollowedFiles
from podium.server.serving.health import Check, CheckError, Health, Report, ping
from podium.server.serving.listener import ServingError, listen
from podium.server.serving.plain import health_page, serve_health_and_metrics, serve_plain
from podium.server.serving.server import Server, metrics_page, serve
from podium.server.serving.stand_in import ProbeStandIn
from podium.server.serving.tls import ServingTls, serving_tls

__all__ = [
    "Access",
    "CertificateError",
    "Check",
    "CheckError",
    "FollowedFiles",
    "Health",
    "KeyPair",
    "ProbeStandIn",
    "Report",
    "Server",
    "ServingError",
    "ServingTls",
    "content_of",
    "failure",
    "health_page",
    "listen",
    "load",
    "metrics_page",
    "open_access",
    "ping",
    "self_signed",
    "serve",
    "serve_health_and_metrics",
    "serve_plain",
    "serving_tls",
]
