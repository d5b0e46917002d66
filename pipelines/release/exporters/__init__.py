"""Releases written as the trainers' own data loaders read them."""
