"""Reads and checks what a report is made from: result files, traces, histories, units and words.
Knows neither charts nor views."""
