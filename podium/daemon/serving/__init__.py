"""The HTTPS endpoints: health, metrics and the configuration in effect.

Owns the listening socket, certificates, who may ask for what, the texts of health endpoints. Never decides whether
anything is healthy: it is given checks, and what to show, by the daemon.
"""

from podium.daemon.serving.certificates import CertificateError, KeyPair, load, self_signed
from podium.daemon.serving.doors import DoorOptions, Doors, open_doors
from podium.daemon.serving.health import Check, CheckError, Health, Report, ping
from podium.daemon.serving.queue_page import queue_page
from podium.daemon.serving.server import Server, ServingError, serve
from podium.daemon.serving.stand_in import ProbeStandIn
from podium.daemon.serving.tls import ServingTls, serving_tls
from podium.daemon.serving.tls_limits import TlsLimits

__all__ = [
    "CertificateError",
    "Check",
    "CheckError",
    "DoorOptions",
    "Doors",
    "Health",
    "KeyPair",
    "ProbeStandIn",
    "Report",
    "Server",
    "ServingError",
    "ServingTls",
    "TlsLimits",
    "load",
    "open_doors",
    "ping",
    "queue_page",
    "self_signed",
    "serve",
    "serving_tls",
]
