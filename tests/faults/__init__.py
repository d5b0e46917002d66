"""Faults of services and what a command makes of them, one row a fault."""
