"""Container registries: charts and images as blobs and manifests."""
