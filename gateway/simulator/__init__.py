"""A model server that keeps time instead of computing: for tests, plans, and who has no GPU."""
