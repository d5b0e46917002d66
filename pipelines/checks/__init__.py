"""Checks: one module a family; every check answers PASS, FAIL or UNKNOWN."""
