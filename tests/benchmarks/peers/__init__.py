"""Other systems on the same requests, each run by a Python of its own."""
