"""The TorchX scheduler ``symph``: TorchX's command line and API, with this package as the place that runs things."""
