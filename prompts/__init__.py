"""Versioned prompts: `<name>/v<N>.md`; a shipped version is never edited."""
