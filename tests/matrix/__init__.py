"""The wheel in environments of its own, at both ends of every dependency and of Python."""
