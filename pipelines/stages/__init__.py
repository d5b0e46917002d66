"""Stages: one module a stage; no stage imports another."""
