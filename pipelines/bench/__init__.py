"""How good the checks and the judges are: planted defects and the judge card."""
