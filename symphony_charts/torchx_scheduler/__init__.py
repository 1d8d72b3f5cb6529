"""The TorchX scheduler `symph`, which connects TorchX's command line and API to this package."""
