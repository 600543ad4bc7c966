"""What Headway metered, as an operator reads it."""

SETTLE_SECONDS = 10.0
