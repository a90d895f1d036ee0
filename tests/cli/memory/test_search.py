"""headroom search: trained and simulated trials agree, and the blocks in the way are named."""

from __future__ import annotations

from typing import Any

from conftest import Headroom, record_of

TINY = "resnet(batch=4,depth=18,width=8)"


def searched(headroom: Headroom, *arguments: str) -> dict[str, Any]:
    outcome = headroom("search", *arguments, "--json")
    assert outcome.code == 0, outcome.errors
    return record_of(outcome.output)


def only_row(found: dict[str, Any]) -> dict[str, Any]:
    (search,) = found["searches"]
    (row,) = search["allocators"]
    return row


def test_what_is_trained_on_host_is_what_is_simulated_under_its_rules(headroom: Headroom) -> None:
    asked = ("-a", "allocator=caching", "--points", "2", "--steps", "2")
    trained = searched(headroom, TINY, "--device", "host(capacity=16MiB)", *asked)
    simulated = searched(headroom, TINY, "--device", "meta(capacity=16MiB,granule=4KiB)",
                         "-a", "rules=onednn", *asked)
    assert (trained.pop("simulated"), simulated.pop("simulated")) == (False, True)
    assert trained.pop("device") != simulated.pop("device")
    assert only_row(trained)["refused"]["failure"]["pins"] is not None
    assert trained == simulated


def test_every_trial_that_is_trained_is_told_before_it_takes_its_time(headroom: Headroom) -> None:
    trained = headroom("search", TINY, "--device", "host(capacity=16MiB)", "-a", "allocator=caching",
                       "--points", "2", "--steps", "2")
    first, *rest = trained.errors.splitlines()
    assert first == "Trying caching"
    assert len(rest) > 2 and all(line.startswith("  training batch ") for line in rest)
    simulated = headroom("search", TINY, "--device", "16MiB", "-a", "allocator=caching", "--points", "2")
    assert simulated.errors == "Trying caching\n"


def test_the_largest_batch_trains_and_the_next_is_explained(headroom: Headroom) -> None:
    for row in searched(headroom, TINY, "--device", "32MiB")["searches"][0]["allocators"]:
        batch = row["largest_batch"]
        for size, code in ((batch, 0), (batch + 1, 3)):
            workload = f"resnet(batch={size},depth=18,width=8)"
            assert size == 0 or headroom("plan", workload, "--device", "32MiB", "--steps", "3", "-a",
                                         f"allocator={row['allocator']}").code == code
        if row["refused"] is not None:
            assert row["refused"]["batch"] == batch + 1
            assert row["refused"]["failure"]["requested_bytes"] > 0
            assert row["allocator"] not in row["refused"]["served_by_simulated"]


def test_the_smallest_capacity_serves_the_batch(headroom: Headroom) -> None:
    row = only_row(searched(headroom, TINY, "--device", "1GiB", "-a", "allocator=bfc(growth=on)"))
    capacity = row["smallest_capacity_bytes"]
    assert headroom("plan", TINY, "--device", f"meta(capacity={capacity},granule=2MiB)",
                    "-a", "allocator=bfc(growth=on)").code == 0


def test_a_workload_without_a_batch_to_vary_is_refused(headroom: Headroom) -> None:
    outcome = headroom("search", "replay(file=none.hrtrace)", "--device", "1GiB")
    assert outcome.code == 2
    assert "batch" in outcome.errors


def test_accumulation_is_refused_with_where_to_go_instead(headroom: Headroom) -> None:
    outcome = headroom("search", TINY, "--device", "1GiB", "-a", "accumulation=micro_batches(k=2)")
    assert outcome.code == 2
    assert "headroom plan" in outcome.errors


def test_a_device_that_is_not_here_says_what_it_would_need(headroom: Headroom) -> None:
    outcome = headroom("search", TINY, "--device", "cuda", "-a", "allocator=caching")
    assert outcome.code == 2
    assert "cuda" in outcome.errors


def test_strategies_that_exclude_each_other_are_refused_with_the_reason(headroom: Headroom) -> None:
    outcome = headroom("search", TINY, "--device", "1GiB", "-a", "allocator=caching",
                       "-a", "execution=eager", "-a", "optimizer=sgd(step=in_backward)")
    assert outcome.code == 2
    assert "eager" in outcome.errors and "step=in_backward" in outcome.errors
