"""What a package can add to symph: a verb, an importer, a backend and a kind."""
