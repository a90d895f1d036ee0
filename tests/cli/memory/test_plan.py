"""headroom plan: its answers agree with runs, and it says what it cannot answer."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from conftest import Headroom, Outcome, record_of, samples

TINY = "resnet(depth=18,width=8)"


def planned(headroom: Headroom, *arguments: str, code: int = 0) -> dict[str, Any]:
    outcome = headroom("plan", *arguments, "--json")
    assert outcome.code == code, outcome.errors
    return record_of(outcome.output)


def only_plan(result: dict[str, Any]) -> dict[str, Any]:
    (plan,) = result["plans"]
    return plan


def test_the_peaks_are_those_of_a_run_of_the_same_cells(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only", "--max-pairs", "1").code == 0
    checked = 0
    for sample in samples(headroom.only_run()):
        cell = sample["cell"]
        result = planned(headroom, cell["workload"], "--device", cell["device"],
                         "-a", f"allocator={cell['allocator']}")
        (row,) = only_plan(result)["allocators"]
        for kind in ("requested", "allocated", "reserved"):
            assert row[f"{kind}_bytes_peak"] == sample["memory"][f"{kind}_bytes"]["overall_peak"]
        assert only_plan(result)["peak_live_bytes"] == sample["memory"]["lower_bound_bytes"]
        for count in ("flops_per_step", "recomputed_ops_per_step"):
            assert only_plan(result)[count] == sample[count]
        checked += 1
    assert checked == 12


def test_every_allocator_is_asked_when_none_is_named(headroom: Headroom) -> None:
    plan = only_plan(planned(headroom, TINY, "--device", "256MiB"))
    listed = json.loads(headroom("list", "allocators", "--json").output)["allocators"]
    assert {row["allocator"] for row in plan["allocators"]} == {entry["name"] for entry in listed}
    assert sum(plan["live_bytes_at_peak"].values()) == plan["peak_live_bytes"]


def test_an_axis_is_an_option_of_its_own_and_adamw_is_what_adam_does(headroom: Headroom) -> None:
    asked = planned(headroom, TINY, "--device", "256MiB", "-a", "optimizer=adam", "-a", "precision=bf16")
    assert planned(headroom, TINY, "--device", "256MiB", "--optimizer", "adamw", "--precision", "bf16") == asked


def test_the_answer_says_what_was_counted(headroom: Headroom) -> None:
    words = headroom("plan", "resnet(depth=18,width=8,batch=3,image=32)", "--device", "256MiB", "-a", "optimizer=adam").output
    assert "optimizer=adam; a batch has images of 3x3x32x32" in words


def test_the_largest_batch_fits_and_one_more_does_not(headroom: Headroom) -> None:
    for row in only_plan(planned(headroom, TINY, "--device", "1GiB"))["allocators"]:
        allocator, batch = f"allocator={row['allocator']}", row["largest_batch"]["batch"]
        for more, code in ((0, 0), (1, 3)):
            planned(headroom, f"resnet(depth=18,width=8,batch={batch + more})", "--device", "1GiB",
                    "-a", allocator, code=code)


def test_nothing_that_fits_has_an_exit_status_of_its_own_and_is_an_answer(headroom: Headroom) -> None:
    outcome = headroom("plan", TINY, "--device", "4MiB", "-a", "allocator=malloc")
    assert outcome.code == 3
    assert outcome.output.startswith("NO: out of memory for the weights and states")
    assert outcome.errors == ""


def test_the_first_line_is_the_answer_and_the_table_of_all_allocators_is_asked_for(headroom: Headroom) -> None:
    arguments = ("plan", TINY, "--device", "256MiB")
    assert headroom(*arguments).output.startswith("YES: PyTorch's caching allocator reserves")
    assert "stitching" not in headroom(*arguments).output
    assert "stitching" in headroom(*arguments, "--all").output


def test_what_would_fit_does_fit_with_the_memory_that_is_told(headroom: Headroom) -> None:
    asked = ["bert(preset=tiny,batch=64)", "--device", "40MiB"]
    outcome = headroom("plan", *asked)
    assert outcome.output.startswith("NO: ")
    advice = re.findall(r"^  (\S+=.*?) {2,}([\d.]+ \w+)", outcome.output, re.MULTILINE)
    changes = [(change, size) for change, size in advice if "allocator=" not in change]
    assert changes, outcome.output
    for change, size in changes:
        axes = [word for axis in change.split(" + ") for word in ("-a", axis)]
        applied = headroom("plan", *asked, *axes)
        assert applied.output.startswith(f"YES: PyTorch's caching allocator reserves at most {size} "), change


def test_programs_get_the_advice_that_people_get(headroom: Headroom) -> None:
    asked = ["bert(preset=tiny,batch=64)", "--device", "40MiB"]
    told = headroom("plan", *asked).output
    advice = planned(headroom, *asked, code=3)["advice"]
    assert advice
    for change in advice:
        words = " + ".join(f"{axis}={value}" for axis, value in change["axes"].items())
        (line,) = [line for line in told.splitlines() if line.startswith(f"  {words}  ")]
        assert line.endswith(f"up to batch {change['largest_batch']}")
    assert planned(headroom, "bert(preset=tiny,batch=1)", "--device", "1GiB")["advice"] == []


def test_an_axis_that_is_already_set_is_not_advised_to_change(headroom: Headroom) -> None:
    outcome = headroom("plan", "bert(preset=tiny,batch=64)", "--device", "30MiB", "-a", "checkpointing=every(n=1)")
    assert "What would fit" in outcome.output or "None of the changes" in outcome.output
    assert "checkpointing=s" not in outcome.output


@pytest.mark.parametrize("device", ["a100-80gb", "meta:a100-80gb", "meta(card=a100-80gb)"])
def test_a_card_may_be_named_for_short(headroom: Headroom, device: str) -> None:
    result = planned(headroom, TINY, "--device", device, "-a", "allocator=malloc")
    assert result["capacity_bytes"] == 84987740160 // 2**21 * 2**21
    assert result["device"] == "meta(card=a100-80gb)"


@pytest.mark.parametrize("device", ["4TiB", "meta:4TiB", "meta(capacity=4TiB)"])
def test_a_capacity_may_be_named_for_short_and_beyond_any_card(headroom: Headroom, device: str) -> None:
    result = planned(headroom, TINY, "--device", device, "-a", "allocator=malloc")
    assert result["capacity_bytes"] == 4 * 2**40


def test_optimizers_are_planned_side_by_side(headroom: Headroom) -> None:
    result = planned(headroom, TINY, "--device", "256MiB", "-a", "optimizer=sgd", "-a", "optimizer=adam",
                     "-a", "allocator=caching")
    sgd, adam = result["plans"]
    assert sgd["axes"]["optimizer"] == "sgd"
    states = [plan["live_bytes_at_peak"]["optimizer_state"] for plan in (sgd, adam)]
    assert states[1] == 2 * states[0] + 4  # two states a weight, and the count of steps


def test_what_a_strategy_computes_again_is_counted_and_what_does_nothing_is_said(headroom: Headroom) -> None:
    result = planned(headroom, TINY, "--device", "4GiB", "-a", "allocator=malloc", "-a", "checkpointing=none",
                     "-a", "checkpointing=every(n=1)", "-a", "checkpointing=selective")
    plain, every, selective = result["plans"]
    again = every["ops_per_step"] - plain["ops_per_step"]
    assert again == every["recomputed_ops_per_step"] > 0
    assert every["touched_bytes_per_step"] > plain["touched_bytes_per_step"]
    assert selective["ops_per_step"] == plain["ops_per_step"]
    assert plain["not_engaged"] is None
    assert "no op of 'train' is recomputed" in selective["not_engaged"]


def test_what_leaves_the_device_is_shown_as_memory_of_the_host(headroom: Headroom) -> None:
    arguments = [TINY, "--device", "4GiB", "-a", "allocator=malloc"]
    plain = only_plan(planned(headroom, *arguments))
    offload = only_plan(planned(headroom, *arguments, "-a", "checkpointing=offload"))
    assert plain["host_bytes_peak"] == plain["offloaded_bytes_per_step"] == 0
    saved = plain["peak_live_bytes"] - offload["peak_live_bytes"]
    assert 0 < saved <= offload["host_bytes_peak"] <= offload["offloaded_bytes_per_step"]
    assert "of host memory" in headroom("plan", *arguments, "-a", "checkpointing=offload").output
    assert "of host memory" not in headroom("plan", *arguments).output


def test_a_budget_too_small_is_refused_with_the_smallest_that_would_do(headroom: Headroom) -> None:
    arguments = [TINY, "--device", "4GiB", "-a", "allocator=malloc", "-a"]
    outcome = headroom("plan", *arguments, "checkpointing=optimal(budget=64KiB)")
    assert outcome.code == 2
    found = re.search(r"budget=(\d+) or more", outcome.errors)
    assert found, outcome.errors
    least = int(found.group(1))
    assert headroom("plan", *arguments, f"checkpointing=optimal(budget={least})").code == 0
    assert headroom("plan", *arguments, f"checkpointing=optimal(budget={least - 1})").code == 2


def test_text_and_programs_are_told_the_same(headroom: Headroom) -> None:
    arguments = ["bert(preset=tiny)", "--device", "64MiB", "-a", "allocator=bfc(growth=on)"]
    row = only_plan(planned(headroom, *arguments))["allocators"][0]
    text = headroom("plan", *arguments).output
    assert "Simulated" in text
    assert str(row["largest_batch"]["batch"]) in text
    assert "not measured" in text


def test_weights_of_hundreds_of_gigabytes_are_counted(headroom: Headroom) -> None:
    result = planned(headroom, "gpt(preset=paper)", "--device", "4TiB", "-a", "allocator=caching")
    assert only_plan(result)["parameters"] == 174_604_259_328
    planned(headroom, "gpt(preset=paper)", "--device", "h200-141gb", code=3)


def refused(outcome: Outcome, *words: str) -> None:
    assert outcome.code == 2
    assert all(word in outcome.errors for word in words), outcome.errors


@pytest.mark.parametrize(("arguments", "words"), [
    (["resnte", "--device", "a100-80gb"], ["did you mean 'resnet'?"]),
    (["resnet(bach=3)", "--device", "a100-80gb"], ["did you mean 'batch'?"]),
    (["resnet(depth=20)", "--device", "a100-80gb"], ["depth 20"]),
    (["resnet", "--device", "a100-80g"], ["unknown device or card", "did you mean 'a100-80gb'?"]),
    (["resnet", "--device", "meta:a100-81gb"], ["a100-80gb"]),
    (["resnet", "--device", "host"], ["real device", "meta(card=a100-80gb)"]),
    (["resnet", "--device", "meta"], ["meta(card="]),
    (["resnet", "--device", "80XiB"], ["--device", "80XiB"]),
    (["resnet"], ["--device is required"]),
    (["resnet", "--device", "1GiB", "-a", "allocator=bcf"], ["did you mean 'bfc'?"]),
    (["resnet", "--device", "1GiB", "-a", "device=host"], ["--device"]),
    (["resnet", "--device", "1GiB", "-a", "optimiser=adam"], ["did you mean 'optimizer'?"]),
    (["resnet", "--device", "1GiB", "--steps", "0"], ["--steps"]),
])
def test_a_question_that_cannot_be_answered_is_told_what_is_right(
        headroom: Headroom, arguments: list[str], words: list[str]) -> None:
    refused(headroom("plan", *arguments), *words)
