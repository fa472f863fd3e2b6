"""What plugins are written against: extension points, statuses, cluster events, the state of one attempt."""
