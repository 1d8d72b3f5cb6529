"""The programs that the end-to-end tests need and no Python package brings: which they are, and how to have them."""
