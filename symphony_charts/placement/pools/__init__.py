"""Read node pools from the users' files."""
