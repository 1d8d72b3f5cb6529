"""Node pools, read from the files that users have."""
