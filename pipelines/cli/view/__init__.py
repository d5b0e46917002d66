"""``synth view``: a local page to look through a workspace, its refused rows included."""
