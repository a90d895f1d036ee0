"""The documentation names the versions that the other tests here compare with."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name,package,pins", [
    ("PyTorch", "torch", "pytorch.alone.pip"),
    ("JAX", "jax", "jax.pip"),
    ("TensorFlow", "tensorflow", "tensorflow.pip"),
])
def test_the_documented_version_is_the_pinned_one(name, package, pins):
    pinned = re.search(rf"^{package}==(\S+)$", (ROOT / "scripts/packages" / pins).read_text(), re.MULTILINE)[1]
    assert f"{name} {pinned}" in (ROOT / "docs/reference/allocators.md").read_text()
