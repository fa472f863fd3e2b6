"""Stand-in controllers: what kube-controller-manager would do for workloads, budgets and the claims of pods.

Owns: the pods of workloads, their claims, garbage collection, the status of budgets, the default service accounts.
Must never: bind a pod to a node, which is the scheduler's task.
"""

from podium.sandbox.controllers.controllers import Controllers

__all__ = ["Controllers"]
