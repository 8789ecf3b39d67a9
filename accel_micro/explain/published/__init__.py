"""Times of whole models that others published: as data, and what can and cannot be concluded from them."""
