"""From accepted rows to published, immutable datasets, and back: verification."""
