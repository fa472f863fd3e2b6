"""Regular expressions with RE2's syntax, in time linear in the text: no pattern backtracks.

Differs from RE2: names of scripts such as Greek are refused (Python has no data for them), and so are patterns of more
than 5,000 instructions or more than 250 nested groups. A search that takes too many steps ends the evaluation.
Source: Go's regexp/syntax 1.26 for what patterns mean.
"""

from podium.cel.regex.matching import Pattern, compile_pattern
from podium.cel.regex.syntax import PatternError

__all__ = ["Pattern", "PatternError", "compile_pattern"]
