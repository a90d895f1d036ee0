"""What a report is made from: result files, traces and histories read and checked, units and words.
Knows neither charts nor views."""
