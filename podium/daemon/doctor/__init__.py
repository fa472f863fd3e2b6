"""`podium doctor`: checks whether podium would run on a cluster and, if not, advises what to do.

Owns the checks and the advice. Never changes anything: access reviews are the only objects it posts.
"""

from podium.daemon.doctor.checks import examine, examine_needs
from podium.daemon.doctor.findings import Finding, Report, Verdict

__all__ = ["Finding", "Report", "Verdict", "examine", "examine_needs"]
