"""The memory of each module, named by the path of PyTorch's modules, and of the lines of a library's model."""

import random

import pytest

LAYERS = """
import torch
class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = torch.nn.Linear(width, 4 * width, bias=False)
        self.down = torch.nn.Linear(4 * width, width, bias=False)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block(width) for _ in range(3))
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
def main(width, batch):
    model = Net(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9, foreach=False)
    for step in range(3):
        model(torch.randn(batch, width, device="cuda")).sum().backward()
        optimizer.step()
"""


def device_of(answer):
    return answer.figures["frameworks"][0]["devices"][0]


def modules(device):
    assert sum(module["bytes"] for module in device["modules"]) == sum(
        share["bytes"] for share in device["roles"] if share["name"] != "rounding by the allocator")
    return {module["name"]: module["roles"] for module in device["modules"]}


def test_weights_and_activations_are_of_the_module_that_made_them(gpu, pytorch):
    width, batch = random.randrange(128, 256, 32), random.randrange(4096, 8192, 256)
    answer = gpu("rtx4090", program=LAYERS + f"main({width}, {batch})", python=pytorch)
    assert answer.status == 0, answer.errors
    found = modules(device_of(answer))
    weight = 4 * width * width * 4
    for layer in range(3):
        for name in ("up", "down"):
            held = found[f"layers.{layer}.{name}"]
            assert held["weights"] == held["gradients"] == held["optimizer state"] == weight
    # The output of the ReLU is made by the block's own code; `down` needs it in the backward pass.
    wide = batch * 4 * width * 4
    assert found["layers.0"]["activations"] >= wide
    assert "layers.*.up  (3 alike)" in answer.output


@pytest.mark.program("""
import torch
net, other = torch.nn.Sequential(torch.nn.Linear(256, 256)).cuda(), torch.nn.Linear(8, 8).cuda()
batch = torch.randn(512, 256, device="cuda")
net(batch).sum().backward()
del other
net.append(torch.nn.Linear(256, 512).cuda())
whole = torch.nn.ModuleDict({"inner": net, "head": torch.nn.Linear(512, 64).cuda()})
optimizer = torch.optim.SGD(whole.parameters(), momentum=0.9)
for step in range(3):
    whole["head"](whole["inner"](batch)).sum().backward()
    optimizer.step()
""")
def test_a_module_keeps_its_name_when_another_model_is_deleted_or_it_becomes_a_part(recorded):
    found = modules(recorded.devices[0])
    assert found["net.0"].keys() >= {"weights", "optimizer state", "activations"}
    assert not any(name.startswith("inner.0") for name in found)


@pytest.mark.program("""
import torch
small, large = torch.nn.Linear(256, 256, bias=False), torch.nn.Linear(256, 1024, bias=False)
model = torch.nn.ModuleDict({"small": small, "large": large})
weights, gradients = torch.zeros(2_000_000, device="cuda"), torch.zeros(2_000_000, device="cuda")
for parameter, place in zip(model.parameters(), (slice(0, 256 * 256), slice(256 * 256, 5 * 256 * 256))):
    parameter.data = weights[place].view_as(parameter)
    parameter.grad = gradients[place].view_as(parameter)
optimizer = torch.optim.SGD(model.parameters())
for step in range(3):
    large(small(torch.ones(8, 256, device="cuda"))).sum().backward()
    optimizer.step()
""")
def test_weights_and_gradients_that_lie_in_one_buffer_are_of_their_own_modules(recorded):
    """DeepSpeed, FSDP and DistributedDataParallel make such buffers."""
    found = modules(recorded.devices[0])
    for role in ("weights", "gradients"):
        assert found["small"][role] == 256 * 256 * 4
        assert found["large"][role] == 4 * found["small"][role]


@pytest.mark.program("""
import torch
from torch.utils.checkpoint import checkpoint
layers = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
checkpoint(layers, torch.randn(16, 256, device="cuda", requires_grad=True), use_reentrant=False).sum().backward()
large = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
""")
def test_what_is_allocated_after_checkpointing_is_of_no_module(recorded):
    """Checkpointing ends a repeated forward pass with an exception once it has all that the backward pass needs."""
    assert modules(recorded.devices[0])["(outside of modules)"]["batch and other"] >= 64 << 20


@pytest.mark.program("""
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)).cuda()
model.compile()
for _ in range(2):
    model(torch.randn(4096, 256, device="cuda")).sum().backward()
""")
def test_a_model_that_compiles_itself_counts_as_one_module(triton, recorded):
    assert modules(recorded.devices[0])["model"]["activations"] >= 4096 * 1024 * 4


@pytest.mark.program("""
import torch
def network():
    return torch.nn.Sequential(torch.nn.Linear(1024, 1024, bias=False)).cuda()
generator, others = network(), [network(), network()]
for each in generator, *others:
    each(torch.zeros(1, 1024, device="cuda"))
""")
def test_modules_of_one_class_are_told_apart(recorded):
    held = {name: roles.get("weights") for name, roles in modules(recorded.devices[0]).items()}
    for name in ("generator.0", "Sequential.0", "Sequential 2.0"):
        assert held[name] == 4 * 1024 * 1024, held


@pytest.fixture
def noted_and_plain(run_each, pytorch, request):
    """What was recorded of this test's program, with and without modules."""
    return [run_each(request.node, "noted_and_plain", pytorch, HEADROOM_GPU_MODULES=switch) for switch in ("on", "off")]


@pytest.mark.program(LAYERS + "main(256, 4096)")
def test_the_peak_is_the_same_whether_modules_are_noted_or_not(noted_and_plain):
    noted, plain = (recorded.devices[0] for recorded in noted_and_plain)
    for figure in ("peak_allocated_bytes", "peak_reserved_bytes", "roles", "lines"):
        assert noted[figure] == plain[figure]
    assert len(modules(noted)) > len(modules(plain))


@pytest.mark.program("""
import torch
class Fails(torch.nn.Module):
    def forward(self, x):
        raise ValueError
class Works(torch.nn.Module):
    def forward(self, x):
        return x + 1
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Fails(), Works()
    def forward(self, x, which):
        return which(x)
net = Net()
x = torch.zeros(1 << 20, device="cuda")
try:
    net(x, net.first)
except ValueError:
    pass
kept = net(x, net.second)
""")
def test_a_module_that_an_exception_left_holds_nothing_of_what_follows(recorded):
    assert set(modules(recorded.devices[0])) == {"second", "(outside of modules)"}


@pytest.mark.program("""
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
compiled = torch.compile(model, backend="aot_eager")
for _ in range(2):
    compiled(torch.randn(4096, 512, device="cuda")).pow(2).sum().backward()
print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])
""")
def test_noting_modules_neither_breaks_a_compiled_graph_nor_changes_its_bytes(noted_and_plain):
    noted, plain = noted_and_plain
    assert noted.printed == ["graphs 1"]
    assert "global hooks" not in noted.errors
    assert noted.devices[0]["peak_reserved_bytes"] == plain.devices[0]["peak_reserved_bytes"]


@pytest.mark.program("""
import torch
class Model(torch.nn.Module):
    def __init__(self, x):
        x = torch.nn.LayerNorm(1024).cuda()(x)
        super().__init__()
        self.layer, self.x = torch.nn.Linear(1024, 1024, bias=False).cuda(), x
def main():
    model = Model(torch.randn(64, 1024, device="cuda"))
    model.layer(model.x).sum().backward()
main()
""")
def test_a_module_may_be_called_while_another_one_has_yet_to_be_constructed(recorded):
    assert modules(recorded.devices[0])["layer"]["weights"] == 4 * 1024 * 1024


@pytest.mark.program("""
import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
model = torch.nn.ModuleDict({"up": torch.nn.Linear(512, 512), "down": checkpoint_wrapper(torch.nn.Linear(512, 512))})
model.forward = lambda x: model["down"](model["up"](x))
compiled = torch.compile(model.cuda(), backend="eager")
optimizer = torch.optim.SGD(compiled.parameters(), momentum=0.9)
for _ in range(2):
    compiled(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
""")
def test_modules_have_their_own_names_under_wrappers(recorded):
    weights = {name for name, roles in modules(recorded.devices[0]).items() if "weights" in roles}
    assert weights == {"up", "down"}


def test_what_a_librarys_loop_allocates_in_its_model_is_attributed_to_the_librarys_lines(gpu, pytorch, tmp_path):
    package = tmp_path / "site-packages" / "loops"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("""
import torch
class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(64, 4096, bias=False)
    def forward(self, x):
        return self.wide(x).relu().sum()
def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        loss = model(torch.ones(256, 64, device="cuda"))
        loss.backward()
        optimizer.step()
        loss.item()
""")
    program = f"""
import sys
sys.path.insert(0, {str(package.parent)!r})
import torch, loops
class Own(loops.Wide):
    def forward(self, x):
        return self.wide(x).relu().sum()
model = WHICH().cuda()
loops.train(model)
"""

    def lines(which):
        answer = gpu("rtx4090", "--until-step", "all", python=pytorch, program=program.replace("WHICH", which))
        assert "does not compute them: program.py:9 (in loops/__init__.py:15)\n" in answer.output
        return [share["name"].split("/")[-1] for share in answer.figures["frameworks"][0]["devices"][0]["lines"]]

    of_library, of_program = lines("loops.Wide"), lines("Own")
    assert {"__init__.py:8", "program.py:8", "program.py:9"} <= set(of_library), "activations, weights, state"
    assert "program.py:7" in of_program and "__init__.py:8" not in of_program
