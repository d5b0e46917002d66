"""Picture files taken apart without decoding: what they are, how large, and one frame without metadata."""
