"""The programs that the end-to-end tests need and no Python package has: a catalog, and their builds."""
