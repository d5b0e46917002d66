"""The ``synth`` command line: what a person runs and reads."""
