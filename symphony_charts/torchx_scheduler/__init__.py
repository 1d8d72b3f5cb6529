"""The TorchX scheduler ``symph`` lets TorchX's command line and API run things through this package."""
