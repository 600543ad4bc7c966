"""Model definitions of the bundled worker."""
