"""Which lane, which target, when, and what to do when it fails."""
