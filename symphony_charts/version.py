"""The version of this package: what `symph --version` prints and the wheel is named after."""

__version__ = "0.1.0"
