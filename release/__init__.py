"""What turns this folder into a release, and what must hold of one: `make release-check`."""
