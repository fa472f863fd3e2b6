"""What a release of podium consists of, built reproducibly: `make release`."""
