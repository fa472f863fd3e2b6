"""What `podium plan` and `podium consolidate` say by podium's own rules, held against what podium then does."""
