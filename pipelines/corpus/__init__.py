"""Dumps in, corpus out: pages, links, redirects, facts and images."""
