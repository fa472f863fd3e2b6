"""The HTTPS endpoints: health, metrics and the configuration in effect.

Owns the listening socket, certificates, who may ask for what, the texts of health endpoints. Never decides whether
anything is healthy: it is given checks, and what to show, by the daemon.
"""

from podium.service.serving.access import Access, AccessOptions, open_access
from podium.service.serving.certificates import CertificateError, KeyPair, load, self_signed
from podium.service.serving.health import Check, CheckError, Health, Report, ping
from podium.service.serving.server import Server, ServingError, serve
from podium.service.serving.stand_in import ProbeStandIn
from podium.service.serving.tls import ServingTls, serving_tls
from podium.service.serving.tls_limits import TlsLimits

__all__ = [
    "Access",
    "AccessOptions",
    "CertificateError",
    "Check",
    "CheckError",
    "Health",
    "KeyPair",
    "ProbeStandIn",
    "Report",
    "Server",
    "ServingError",
    "ServingTls",
    "TlsLimits",
    "load",
    "open_access",
    "ping",
    "self_signed",
    "serve",
    "serving_tls",
]
