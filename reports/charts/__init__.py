"""Charts: each turns data into an inline SVG with its legend and table. They know `data` but no view."""
