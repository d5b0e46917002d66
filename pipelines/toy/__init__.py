"""The toy room: a generated Wikipedia, published the way the real one is, and what reads its pictures."""
