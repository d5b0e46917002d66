"""The toy Wikipedia: a seeded closed world, published the way the real one is."""
