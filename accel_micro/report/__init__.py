"""Records to tables, JSON and HTML."""
