"""The toy Wikipedia and the scripted players; production works without it."""
