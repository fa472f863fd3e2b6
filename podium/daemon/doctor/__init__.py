"""`podium doctor`: would podium run here, and if not, what is to be done.

Owns the questions and the advice. Never changes anything: reviews are the only objects it posts.
"""

from podium.daemon.doctor.checks import examine
from podium.daemon.doctor.findings import Finding, Report, Verdict

__all__ = ["Finding", "Report", "Verdict", "examine"]
