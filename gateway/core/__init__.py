"""Values and words that everything shares; imports nothing of the product."""
