"""Clients of services: one module a kind. Only the composition root builds them."""
