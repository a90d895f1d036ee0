"""Turns allocation histories of other programs into Headroom's trace files, and trace files into
what other programs read. README.md says per format what is carried and what is lost.

One module a format, with `matches(head: bytes) -> bool`, `read(path, builder)` and
`write(history, stream)`. To add one, write the module and name it in `FORMATS` of `__main__.py`.
"""
