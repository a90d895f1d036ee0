"""Pictures: data in, one inline SVG with its legend and its table out. Knows `data`, and no view."""
