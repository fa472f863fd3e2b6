"""Answers questions from files, for `podium evaluate`.

Owns recorded scenarios, and questions about one pod in a dumped cluster. Decides nothing itself: every answer comes
from `podium.engine`. Never talks to an API server.
"""

from podium.insight.evaluate.question import PodAnswer, Question
from podium.insight.evaluate.scenarios import Evaluator, Scenario

__all__ = ["Evaluator", "PodAnswer", "Question", "Scenario"]
