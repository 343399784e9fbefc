"""Bytes to distinct lines to masked lines to Drain3 templates, with counts, places and times."""
