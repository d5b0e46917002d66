"""Walks over the link graph, the rules that make them paths, and proofs as graphs."""
