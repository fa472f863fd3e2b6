"""Stand-in controllers: what kube-controller-manager would do for Deployments, ReplicaSets, Jobs and budgets.

Owns: the pods of workloads, garbage collection, the status of budgets, the default service accounts. Must never: place
a pod; that is what schedulers are for.
"""

from podium.sandbox.controllers.controllers import Controllers

__all__ = ["Controllers"]
