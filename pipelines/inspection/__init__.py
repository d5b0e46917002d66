"""Looking at a workspace: views, status, report, explain, diff, audit."""
