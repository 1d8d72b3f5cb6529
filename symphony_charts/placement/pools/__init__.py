"""Node pools are read from the files that users have."""
