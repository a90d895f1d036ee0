"""Sizes are accepted, or refused by name with exit status 2; none overflows."""

from __future__ import annotations

import json
import re

import pytest
from conftest import COUNTING_SUITE, Headroom

WRAPS = ["vocabulary=36028797018963968", "vocabulary=144115188075855873", "batch=9223372036854775807",
         "batch=4611686018427387904", "sequence=4294967296", "hidden=4294967296,heads=1", "layers=4294967297",
         "batch=-1", "batch=9223372036854775808"]


@pytest.mark.parametrize("sizes", WRAPS)
@pytest.mark.parametrize("command", ["plan", "search"])
def test_a_size_that_no_number_holds_is_refused_by_its_name(headroom: Headroom, command: str, sizes: str) -> None:
    outcome = headroom(command, f"gpt(size=tiny,{sizes})", "--device", "4GiB")
    assert outcome.code == 2
    assert sizes.partition("=")[0] in outcome.errors and "fault" not in outcome.errors
    assert outcome.output == ""


@pytest.mark.parametrize(
    "workload",
    ["gpt(size=tiny,batch=2147483647,sequence=2147483647)", "gpt(size=tiny,vocabulary=2147483647,hidden=2147483646)",
     "bert(size=tiny,batch=2147483647,sequence=2147483647)", "resnet(width=2147483647)", "resnet(image=2147483647)",
     "resnet(batch=2147483647,image=100000)", "resnet(classes=2147483647,width=1000000)",
     "gan(latent=2147483647,batch=2147483647,width=2147483647)"],
)
@pytest.mark.parametrize("rules", ["dense", "onednn"])
def test_sizes_whose_product_is_too_large_are_refused(headroom: Headroom, workload: str, rules: str) -> None:
    outcome = headroom("plan", workload, "--device", "4GiB", "-a", f"rules={rules}")
    assert outcome.code == 2
    assert "smaller" in outcome.errors
    assert outcome.output == ""


@pytest.mark.parametrize("axis", ["accumulation=micro_batches(k=4294967298)", "pipeline=prefetch(4294967298)",
                                  "checkpointing=every(n=18446744073709551617)"])
def test_a_count_is_not_cut_to_fewer_bits(headroom: Headroom, counting: str, axis: str) -> None:
    outcome = headroom("run", counting, "--samples-only", "-a", axis)
    assert outcome.code == 2
    assert "must be a whole number from -2147483647 to 2147483647" in outcome.errors


def test_a_plan_of_a_large_network_is_counted_exactly(headroom: Headroom) -> None:
    workload = "gpt(batch=1,context=2048,hidden=4096,layers=1,heads=1,sequence=16,vocabulary=2000000000)"
    fits = json.loads(headroom("plan", workload, "--device", "1GiB", "-a", "allocator=malloc", "--json").output)
    text = json.dumps(fits)
    (parameters,) = re.findall(r'"parameters": (\d+)', text)
    # Token and position embeddings, 12 h² + 13 h for one layer, 2 h for the last layer norm.
    hidden = 4096
    assert int(parameters) == (2_000_000_000 + 2048) * hidden + 12 * hidden**2 + 13 * hidden + 2 * hidden


def test_more_layers_than_a_network_has_are_refused(headroom: Headroom) -> None:
    outcome = headroom("plan", "gpt(size=tiny,layers=2000000000)", "--device", "4GiB")
    assert outcome.code == 2
    assert "layers is 2000000000, but must be at most 10000" in outcome.errors


def test_more_cells_than_anybody_runs_are_refused(headroom: Headroom) -> None:
    values = ", ".join(f'"resnet(batch={batch},depth=18,width=8)"' for batch in range(1, 401))
    sizes = ", ".join(f'"meta(capacity={size}MiB)"' for size in range(1, 401))
    suite = re.sub(r"workload = \[.*?\]", f"workload = [{values}]", COUNTING_SUITE, flags=re.DOTALL)
    suite = suite.replace('"meta(capacity=256MiB)"', f"[{sizes}]")
    outcome = headroom("run", headroom.write("many.toml", suite), "--dry-run")
    assert outcome.code == 2
    assert "many.toml:3: experiment 'small' has 480000 configurations" in outcome.errors
