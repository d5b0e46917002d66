"""What a stage may ask of the outside world (protocols) and who answers (adapters)."""
