"""Questions as they stand in files, and their answers: `podium evaluate`.

Owns recorded scenarios, and a pod beside a dump. Decides nothing itself: every answer comes from `podium.engine`. Never
talks to an API server.
"""

from podium.evaluate.question import PodAnswer, Question
from podium.evaluate.scenarios import Evaluator, Scenario

__all__ = ["Evaluator", "PodAnswer", "Question", "Scenario"]
