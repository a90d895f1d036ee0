"""What the hook computes from a history of allocations. No framework is needed."""

import random
import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness" / "virtual_gpu" / "hook"))
import headroom_lines  # noqa: E402
import headroom_memory as memory  # noqa: E402
import headroom_modules  # noqa: E402
import headroom_xla  # noqa: E402
from headroom_lines import line_of  # noqa: E402

SCRIPT = {"filename": "/home/me/train.py", "line": 7, "name": "<module>"}
MODULE = {"filename": "/x/lib/python3.11/site-packages/torch/nn/modules/module.py", "line": 1,
          "name": "_call_impl"}
OPTIMIZER = {"filename": "/x/site-packages/torch/optim/adam.py", "line": 1, "name": "step"}


class History:
    """Events as PyTorch writes them, one microsecond apart."""

    def __init__(self):
        self.events = []

    def add(self, action, address, size, frames=()):
        time = len(self.events)
        self.events.append({"action": action, "addr": address, "size": size, "time_us": time,
                            "frames": list(frames)})
        return time

    def alloc(self, address, size, *frames):
        return self.add("alloc", address, size, frames)

    def free(self, address, size):
        return self.add("free_completed", address, size)


def shares(summary):
    return {share["name"]: share["bytes"] for share in summary["roles"]}


def a_training_step():
    history = History()
    history.alloc(1000, 100, SCRIPT)  # a weight
    history.alloc(2000, 50, SCRIPT)  # the batch
    history.alloc(3000, 10, MODULE, SCRIPT)  # a temporary of the forward pass
    history.free(3000, 10)
    history.alloc(4000, 70, MODULE, SCRIPT)  # an activation
    history.alloc(5000, 100)  # a gradient, in the engine's thread
    history.free(4000, 70)
    marked = history.alloc(6000, 40, OPTIMIZER, SCRIPT)
    return history, [(marked, 1000, 100, "weights"), (marked, 5000, 100, "gradients")]


@pytest.mark.parametrize("place", ["fsdp/_fully_shard/", "_composable/fsdp/"])  # the second until PyTorch 2.5
def test_what_fsdp_gathers_is_weights_in_each_place_where_versions_keep_it(place):
    history = History()
    history.alloc(1000, 100, {"filename": f"/x/torch/distributed/{place}_fsdp_param_group.py", "line": 1,
                              "name": "unshard"}, MODULE, SCRIPT)
    assert shares(memory.summarise(history.events, [])) == {"gathered weights": 100}


def test_blocks_at_the_peak_have_the_role_they_were_marked_with_or_that_of_their_phase():
    history, marks = a_training_step()
    assert shares(memory.summarise(history.events, marks)) == {
        "weights": 100, "gradients": 100, "activations": 70, "batch and other": 50}


def test_the_peak_is_that_of_the_bytes_held_at_once():
    history, marks = a_training_step()
    summary = memory.summarise(history.events, marks)
    assert summary["peak"] == 320
    assert summary["phase"] == "backward"


def test_lines_are_those_of_the_users_program():
    history, marks = a_training_step()
    summary = memory.summarise(history.events, marks)
    lines = {line["name"]: line["bytes"] for line in summary["lines"]}
    assert lines == {"/home/me/train.py:7": 220, "(backward pass: no Python line)": 100}


def test_where_pytorch_chooses_a_kernel_in_python_is_no_line_of_the_program():
    chooses = {"filename": "/lib/site-packages/torch/_native/registry.py", "line": 1145, "name": "eager_router"}
    library = {"filename": "/lib/site-packages/deepspeed/zero.py", "line": 5, "name": "gather"}
    calls = {"filename": "/lib/site-packages/torch/_ops.py", "line": 1350, "name": "__call__"}
    assert line_of([chooses, calls, chooses]) == line_of([])
    assert line_of([chooses, library]) == "deepspeed/zero.py:5"
    assert line_of([chooses, library, SCRIPT]) == "/home/me/train.py:7"


def test_code_that_torch_compile_generated_is_no_line_of_the_program_wherever_it_lies(monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/scratch/compiled")
    for place in ("/scratch/compiled", "/tmp/torchinductor_me"):
        generated = {"filename": f"{place}/tn/ctnnrirv.py", "line": 1790, "name": "call"}
        assert line_of([generated, SCRIPT]) == "/home/me/train.py:7"


@pytest.mark.parametrize("name", ["<string>", "<stdin>"])
def test_a_program_without_a_file_is_told_by_the_lines_of_its_command_or_input(monkeypatch, name):
    torchs = {"filename": "/lib/site-packages/torch/optim/adam.py", "line": 1, "name": "step"}
    own = {"filename": name, "line": 3, "name": "<module>"}
    headroom_lines.is_users.cache_clear()
    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))
    assert line_of([torchs, own]) == f"{name}:3"
    headroom_lines.is_users.cache_clear()


def test_an_operator_that_torchscript_generated_for_the_backward_pass_has_no_line():
    generated = {"filename": "<string>", "line": 12, "name": "<backward op>"}
    assert line_of([generated]) == line_of([])
    assert line_of([generated, SCRIPT]) == "/home/me/train.py:7"


def test_a_library_that_is_started_by_its_own_command_is_told_by_its_own_lines():
    torchs = {"filename": "/lib/site-packages/torch/nn/modules/conv.py", "line": 1, "name": "forward"}
    hooks = {"filename": "/opt/headroom/harness/virtual_gpu/hook/headroom_values.py", "line": 155, "name": "follow"}
    library = {"filename": "/lib/site-packages/ultralytics/nn/conv.py", "line": 38, "name": "forward"}
    command = {"filename": "/home/me/venv/bin/yolo", "line": 8, "name": "<module>"}
    own = {**command, "filename": "/home/me/bin/train.py"}
    assert line_of([torchs, hooks, library, torchs, command]) == "ultralytics/nn/conv.py:38"
    assert line_of([hooks, torchs, command]) == "torch/nn/modules/conv.py:1"
    jaxs = {"filename": "/opt/venv/lib/python3.11/site-packages/jax/_src/array.py", "line": 414, "name": "__array__"}
    assert line_of([jaxs, library]) == "ultralytics/nn/conv.py:38"
    assert line_of([torchs, library, own]) == "/home/me/bin/train.py:8"
    generated = {"filename": "/home/me/unsloth_compiled_cache/UnslothSFTTrainer.py", "line": 748, "name": "step"}
    assert line_of([torchs, generated, own]) == "/home/me/bin/train.py:8"


def test_what_is_freed_before_the_backward_pass_is_a_temporary():
    history = History()
    history.alloc(1000, 10, MODULE, SCRIPT)
    history.free(1000, 10)
    history.alloc(1000, 5)
    assert shares(memory.summarise(history.events[:1] + history.events[1:], [])) == {
        "temporaries": 10}


def test_a_mark_is_of_the_block_that_lay_there_at_its_time():
    history, times = History(), []
    for beside in (20, 90, 30):  # the second block is there at the peak
        times.append(history.alloc(1000, 10, MODULE, SCRIPT))
        history.alloc(2000, beside, SCRIPT)
        history.free(2000, beside)
        history.free(1000, 10)
    marked = [shares(memory.summarise(history.events, [(time, 1000, 10, "marked")])).get("marked") for time in times]
    assert marked == [None, 10, None]


def patterns(*names):
    return [module["pattern"] for module in memory.modules_in_order({name: {"weights": 1} for name in names})]


def test_modules_that_differ_in_numbers_only_have_one_pattern():
    assert patterns("layers.0.up", "a1.b", "Net/Block_0/norm", "Net/1/x2") == [
        "layers.*.up", "a1.b", "Net/Block_*/norm", "Net/*/x2"]


def test_layers_of_a_sequence_have_patterns_of_their_own_and_numbered_blocks_have_one():
    assert patterns("features.0", "features.3", "head2", "Net/Block_0/Conv_1") == [
        "features.0", "features.3", "head2", "Net/Block_*/Conv_1"]
    assert patterns("layers.0", "layers.0.up", "Net/Block_0", "Net/Block_0/norm")[::2] == ["layers.*", "Net/Block_*"]


def test_what_the_forward_pass_keeps_is_an_activation_whatever_called_the_module():
    """Checkpointing, compiled code and an optimizer that is given a closure stand around or inside a call of
    a module; none of them makes it a part of the backward pass or of the optimizer's step."""
    function = {"filename": "/x/site-packages/torch/autograd/function.py", "line": 1, "name": "apply"}
    checkpoint = {"filename": "/x/site-packages/torch/utils/checkpoint.py", "line": 1, "name": "checkpoint"}
    for frames in ([MODULE, checkpoint, SCRIPT], [function, MODULE, SCRIPT], [MODULE, OPTIMIZER, SCRIPT]):
        history = History()
        history.alloc(1000, 100, *frames)
        history.alloc(2000, 1)  # in the engine's thread
        history.free(1000, 100)
        assert shares(memory.summarise(history.events, []))["activations"] == 100, frames


def test_the_loss_that_an_optimizer_lets_the_program_compute_is_not_the_optimizers():
    closure = {"filename": "/home/me/train.py", "line": 3, "name": "closure"}
    history = History()
    history.alloc(1000, 100, closure, OPTIMIZER, SCRIPT)
    history.alloc(2000, 1)
    history.free(1000, 100)
    assert shares(memory.summarise(history.events, []))["activations"] == 100


def test_the_step_of_an_optimizer_that_the_program_defines_is_the_optimizers():
    step = {"filename": "/home/me/train.py", "line": 3, "name": "step"}
    wrapper = {"filename": "/x/site-packages/torch/optim/optimizer.py", "line": 1, "name": "wrapper"}
    history = History()
    history.alloc(1000, 100, step, wrapper, SCRIPT)
    assert memory.summarise(history.events, [])["phase"] == "optimizer"


def test_what_the_engine_calls_in_python_is_of_the_backward_pass():
    function = {"filename": "/x/site-packages/torch/autograd/function.py", "line": 1, "name": "apply"}
    recompute = {"filename": "/x/site-packages/torch/utils/checkpoint.py", "line": 1, "name": "unpack_hook"}
    hook = {"filename": "/home/me/train.py", "line": 9, "name": "clip"}
    for frames in ([function], [MODULE, recompute], [hook]):
        history = History()
        history.alloc(1000, 100, *frames)
        assert memory.summarise(history.events, [])["phase"] == "backward", frames


def test_what_is_kept_outside_of_modules_until_the_backward_pass_frees_it_is_an_activation():
    history = History()
    history.alloc(1000, 50, SCRIPT)  # the batch, which the program frees
    history.alloc(2000, 100, SCRIPT)  # such as the logarithms that torch.nn.functional.cross_entropy keeps
    history.alloc(3000, 1)
    history.free(2000, 100)
    history.add("free_completed", 1000, 50, [SCRIPT])
    assert shares(memory.summarise(history.events, [])) == {
        "activations": 100, "batch and other": 50, "temporaries": 1}


def test_an_address_that_is_used_again_keeps_the_roles_of_its_owners_apart():
    history = History()
    history.alloc(1000, 10, SCRIPT)
    history.free(1000, 10)
    later = history.alloc(1000, 30, SCRIPT)
    summary = memory.summarise(history.events, [(later, 1000, 30, "weights")])
    assert shares(summary) == {"weights": 30}


def test_a_buffer_of_several_weights_is_divided_among_their_modules():
    history = History()
    marked = history.alloc(1000, 100, SCRIPT)
    marks = [(marked, 1000, 30, "weights", "first"), (marked, 1040, 50, "weights", "second"),
             (marked, 1080, 50, "weights", "reaches beyond")]
    summary = memory.summarise(history.events, marks)
    assert shares(summary) == {"weights": 100}
    assert {module["name"]: module["bytes"] for module in summary["modules"]} == {
        "first": 30, "second": 50, "reaches beyond": 10, "(outside of modules)": 10}


def test_a_mark_before_a_block_was_there_does_not_concern_it():
    history = History()
    history.alloc(1000, 10, SCRIPT)
    history.free(1000, 10)
    history.alloc(1000, 30, SCRIPT)
    summary = memory.summarise(history.events, [(0, 1000, 10, "weights")])
    assert shares(summary) == {"batch and other": 30}


def test_reserved_bytes_peak_by_segments():
    history = History()
    history.add("segment_alloc", 1, 100)
    history.add("segment_map", 2, 50)
    history.add("segment_unmap", 2, 50)
    history.add("segment_alloc", 3, 20)
    assert memory.summarise(history.events, [])["peak_reserved"] == 150


def test_an_empty_history_has_nothing():
    summary = memory.summarise([], [])
    assert (summary["peak"], summary["roles"], summary["lines"]) == (0, [], [])


def test_the_curve_keeps_its_highest_points_however_long_the_history(monkeypatch):
    monkeypatch.setattr(memory, "CURVE_PARTS", 7)
    history = History()
    spike = random.randrange(10, 990)
    for position in range(1000):
        size = 777 if position == spike else 10
        history.add("segment_alloc", 5000, size)
        history.alloc(5000, size, SCRIPT)
        history.add("free_completed", 5000, size, [SCRIPT])
        history.add("segment_free", 5000, size)
    curve = memory.summarise(history.events, [], step_times=[2000])["curve"]
    assert len(curve["positions"]) <= 3 * 7
    assert max(curve["reserved"]) == 777, spike
    assert max(curve["roles"]["batch and other"]) == 777, spike
    assert curve["peak"] in curve["positions"]
    assert curve["steps"] == [2001]


def test_a_history_that_lost_its_beginning_is_completed_by_what_it_frees_and_by_what_is_still_held():
    history, marks = a_training_step()
    history.add("free_completed", 2000, 50, [SCRIPT])
    segments = [{"address": 0, "total_size": 9000, "blocks": [
        {"address": address, "size": size, "state": "active_allocated", "frames": [SCRIPT]}
        for address, size in ((1000, 100), (5000, 100), (6000, 40))]}]
    whole = memory.summarise(memory.with_beginning(history.events, segments), marks)
    assert whole["peak_reserved"] == 9000
    for begin in range(1, 6):
        rest = memory.summarise(memory.with_beginning(history.events[begin:], segments), marks)
        for figure in ("peak", "peak_reserved", "roles", "phase"):
            if begin < 4 or figure != "roles":  # the role of the activation is known as long as its call is
                assert rest[figure] == whole[figure], (begin, figure)


def test_a_long_run_keeps_the_modules_of_its_latest_moments(monkeypatch):
    monkeypatch.setattr(headroom_modules, "MOST_MOMENTS", 8)
    modules = headroom_modules.Modules()
    for number in range(100):
        modules.note(f"layers.{number}")
        assert len(modules.moments) == len(modules.names) <= 8
    assert modules.names[-3:] == ["layers.97", "layers.98", "layers.99"]
    assert modules.at(modules.moments[-1]) == "layers.99"


@pytest.mark.parametrize("page", ["", "page 0, "])  # JAX 0.11 and later name the page
def test_what_an_allocation_of_xla_is_for_is_read_with_and_without_its_page(tmp_path, page):
    text = tmp_path / "module_0001.jit_step.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt"
    text.write_text(f"""BufferAssignment:
allocation 0: size 4096, {page}maybe-live-out:
 value: <5 fusion @0> (size=4096,offset=0): f32[1024]{{0}}
allocation 1: size 2048, {page}parameter 0, shape |f32[512]| at ShapeIndex {{}}:
 value: <2 weights.1 @0> (size=2048,offset=0): f32[512]{{0}}
allocation 2: size 4, {page}thread-local:
allocation 3: size 512, {page}preallocated-temp:
 value: <3 dot @0> (size=512,offset=0): f32[128]{{0}}
""")
    program = headroom_xla.Program(text)
    assert program.bytes_of == {"parameter": {0: 2048}, "result": 4096, "temporary": 512}
    assert program.places == {"dot": [(0, 512)]}


def test_what_xla_sends_between_cards_together_belongs_to_the_module_of_the_first_operation():
    """XLA names what several operations have in common before what they have not."""
    name = "jit(train_step)/transpose(jvp())/while/body/checkpoint/"
    assert headroom_xla.module_of(name + "layers/mlp/(wi_0/dot_general:wi_1/dot_general)") == "layers/mlp/wi_0"
    assert headroom_xla.module_of(name + "(rematted_computation/dot_general:rematted_computation/mul)") == \
        headroom_xla.OUTSIDE
