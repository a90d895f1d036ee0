"""Reads allocation histories that other programs wrote, into Headroom's own trace files.

One module a format, each with `matches(head: bytes) -> bool` and `read(path, builder)`. To add
one, write the module and name it in `FORMATS` of `__main__.py`.
"""
