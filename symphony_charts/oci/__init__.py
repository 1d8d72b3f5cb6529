"""Container registries keep charts and images as blobs and manifests."""
