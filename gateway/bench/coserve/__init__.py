"""Interactive calls and an offline backlog on the same engines, in arms."""
