"""Sections of a page as plain values that a template prints. Knows `charts` and `data`."""
