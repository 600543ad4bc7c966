"""Who is calling: keys and tenants."""
