"""Settings: every key with its default, its bounds and its meaning."""
