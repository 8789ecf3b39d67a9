"""Two sides of stored results put beside each other: what is compared, with what caution, and what decides it."""
