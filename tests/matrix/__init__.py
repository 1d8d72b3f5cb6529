"""The wheel as a stranger has it: in an environment of its own, at both ends of every dependency and of Python."""
