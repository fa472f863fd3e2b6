"""podium's shadow beside the real kube-scheduler, on a real control plane."""
