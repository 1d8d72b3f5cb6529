"""Store charts and images in container registries as blobs and manifests."""
