"""Who would have to go so that a pod fits: candidates, victims, dry runs."""
