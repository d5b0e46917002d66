"""Parts of a run by somebody else."""
