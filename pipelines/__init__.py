"""The synth library: from dump files to verified datasets, with no orchestrator in sight."""
