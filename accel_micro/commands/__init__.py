"""What `accel-micro` can do: a file a command, and one with its options where these are many."""
