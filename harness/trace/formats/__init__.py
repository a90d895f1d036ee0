"""Converts allocation histories of other programs to Headroom's trace files, and trace files to what other
programs read. README.md says for each format what is kept and what is lost.

Each format is a module with `matches(head: bytes) -> bool`, `read(path, builder)` and `write(history,
stream)`. To add one, write the module and name it in `FORMATS` of `__main__.py`."""
