"""How many workers a job needs, from formulas."""
