"""Prefect flows over the pipelines library: orchestration and nothing else."""
