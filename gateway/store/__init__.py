"""Redis scripts and the blob store: the only package that knows how state is kept."""
