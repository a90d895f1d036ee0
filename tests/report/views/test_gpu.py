"""The page of a program on a virtual GPU."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from gpu_fixture import GIB, curve, device, write_gpu
from test_page import HOSTILE, Page

from reports.__main__ import main
from reports.data.gpu import read_gpu
from reports.data.read import InputError


def page_of(directory: Path) -> Page:
    assert main(["gpu", str(directory)]) == 0
    return Page((directory / "report.html").read_text())


def words(page: Page) -> str:
    return " ".join(" ".join(page.text).replace("\u202f", " ").split())


def test_it_begins_with_the_answer_and_says_where_each_figure_is_from(tmp_path: Path) -> None:
    text = words(page_of(write_gpu(tmp_path / "g")))
    assert "It fits: 10 GiB of t4's 15 GiB at the peak, 5 GiB to spare." in text
    assert "layers.0.attention" in text and "/home/me/train.py:12" in text
    assert "cuDNN's own heuristics" in text
    assert "size of cudnnDropoutGetStatesSize" in text and "called 2 times" in text
    assert "What would change it" not in text


def test_out_of_memory_is_told_in_the_frameworks_words_with_the_line(tmp_path: Path) -> None:
    event = {"device": 0, "requested_bytes": GIB, "line": "train.py:9"}
    framework = {"name": "PyTorch", "pid": 7, "steps": 0, "error": "CUDA out of memory. Tried", "out_of_memory": [event],
                 "devices": [], "snapshot": ""}
    text = words(page_of(write_gpu(tmp_path / "g", verdict="does not fit", frameworks=[framework])))
    assert "It does not fit on t4, which has 15 GiB." in text
    assert "CUDA out of memory. Tried At train.py:9." in text


def test_what_was_captured_on_a_cpu_is_told_without_a_card_and_without_reserved_memory(tmp_path: Path) -> None:
    directory = write_gpu(tmp_path / "g", verdict="captured", captured_on="the CPU of this machine", peak_bytes=9 * GIB)
    figures = json.loads((directory / "gpu.json").read_text())
    for name in ("card", "memory_bytes", "context_bytes", "cudnn_workspaces", "sizes_not_known", "sizes_estimated"):
        del figures[name]
    figures["frameworks"][0]["devices"][0] |= {"kind": "cpu", "peak_reserved_bytes": 0}
    (directory / "gpu.json").write_text(json.dumps(figures))
    record = json.loads((directory / "pytorch-7.json").read_text())
    record["devices"][0]["curve"]["reserved"] = [0] * 4
    (directory / "pytorch-7.json").write_text(json.dumps(record))
    text = words(page_of(directory))
    assert "It held 9 GiB at the peak, on the CPU of this machine." in text and "CPU memory" in text
    assert not [word for word in ("Card", "CUDA context", "Virtual", "virtual") if word in text]


def test_devices_that_are_alike_are_shown_once_and_others_beside_them(tmp_path: Path) -> None:
    def process(pid: int, used: dict[str, object]) -> dict[str, object]:
        return {"name": "PyTorch", "pid": pid, "steps": 1, "error": "", "out_of_memory": [], "devices": [used], "snapshot": ""}

    other = device() | {"device": 2, "peak_phase": "forward"}
    frameworks = [process(7, device()), process(8, device() | {"device": 1}), process(9, other)]
    directory = write_gpu(tmp_path / "g", frameworks=frameworks)
    (directory / "pytorch-9.json").write_text(json.dumps({"pid": 9, "devices": [{"device": 2, "curve": curve()}]}))
    page = page_of(directory)
    text = words(page)
    assert text.count("GPUs 0, 1, each") == text.count("GPU 2 of process 9") == 1
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)), "a chart would draw the shapes of another"


def test_managed_memory_is_told_where_a_program_had_some(tmp_path: Path) -> None:
    assert "managed memory not counted 1 GiB" in words(page_of(write_gpu(tmp_path / "g", managed_bytes=GIB)))
    assert "managed memory" not in words(page_of(write_gpu(tmp_path / "h", managed_bytes=0)))


def test_modules_whose_paths_differ_in_numbers_only_share_a_row_with_the_bytes_of_all(tmp_path: Path) -> None:
    modules = [
        {"name": name, "pattern": pattern, "bytes": held * GIB, "roles": {role: held * GIB}}
        for name, pattern, held, role in (
            ("head2", "head2", 5, "weights"), ("layers.0.up", "layers.*.up", 2, "weights"),
            ("layers.10.up", "layers.*.up", 4, "activations"),
        )
    ]
    framework = {"name": "PyTorch", "pid": 7, "steps": 1, "error": "", "out_of_memory": [], "snapshot": "",
                 "devices": [device() | {"modules": modules}]}
    text = words(page_of(write_gpu(tmp_path / "g", frameworks=[framework])))
    assert "layers.*.up (2 alike) 6 GiB 2 GiB 4 GiB head2 5 GiB 5 GiB –" in text


def test_the_gpu_of_the_only_process_is_told_without_its_number(tmp_path: Path) -> None:
    text = words(page_of(write_gpu(tmp_path / "g")))
    assert "GPU 0" in text and "of process" not in text


def test_what_was_tried_is_shown(tmp_path: Path) -> None:
    tried = [{"batch": "4", "verdict": "fits", "peak_bytes": GIB}, {"batch": "8", "verdict": "does not fit", "peak_bytes": GIB}]
    search = {"name": "--batch", "batch": 4, "too_large": 8, "tried": tried}
    settings = [{"setting": "expandable_segments:True", "verdict": "fits", "peak_bytes": GIB}]
    text = words(page_of(write_gpu(tmp_path / "g", largest_batch=search, settings=settings)))
    assert "Other batches, by --batch" in text
    assert "expandable_segments:True" in text


def test_the_peak_and_every_role_reach_the_read_out(tmp_path: Path) -> None:
    directory = write_gpu(tmp_path / "g")
    page_of(directory)
    hover = re.search(r'<script type="application/json">(\{"x".*?)</script>', (directory / "report.html").read_text())
    assert hover is not None
    series = {one["name"]: max(one["values"]) for one in json.loads(hover[1])["series"]}
    assert series == pytest.approx({"reserved": 10240, "weights": 3072, "activations": 6144}, rel=0.01)


def test_records_of_a_search_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    directory = write_gpu(tmp_path / "g", directory="somewhere/batch-4")
    (directory / "batch-4").mkdir()
    (directory / "pytorch-7.json").rename(directory / "batch-4" / "pytorch-7.json")
    assert (7, 0) in read_gpu(directory).curves


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    hostile = {**device(), "modules": [{"name": HOSTILE, "pattern": HOSTILE, "bytes": 1, "roles": {HOSTILE: 1}}]}
    framework = {"name": HOSTILE, "pid": 7, "steps": 0, "error": HOSTILE, "out_of_memory": [], "devices": [hostile],
                 "snapshot": ""}
    directory = write_gpu(tmp_path / "g", card=HOSTILE, frameworks=[framework])
    page = page_of(directory)
    assert "img" not in [tag for tag, _ in page.elements]
    assert not re.search(r"<script>alert", (directory / "report.html").read_text())


def test_another_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gpu.json is missing"):
        read_gpu(tmp_path)


def test_records_outside_of_the_folder_are_not_read(tmp_path: Path) -> None:
    write_gpu(tmp_path / "g", directory="..")
    (tmp_path / "secret-1.json").write_text("not JSON")
    assert list(read_gpu(tmp_path / "g").curves) == [(7, 0)]
