"""Running stages: shards, workspace, assembly, progress."""
