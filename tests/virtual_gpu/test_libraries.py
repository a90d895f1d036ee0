"""Training programs as people write them with libraries for PyTorch. Expected bytes follow from the sizes of
the weights."""

import pytest

from conftest import TWO_RANKS, printed_by, python_of

LAYERS = 512 * 2048 + 2048 + 2048 * 512 + 512  # weights of the two linear layers below
NETWORK = """
import torch
def network():
    return torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512))
data = torch.utils.data.TensorDataset(torch.randn(256, 512), torch.randn(256, 512))
loader = torch.utils.data.DataLoader(data, batch_size=32, num_workers=2, pin_memory=True)
"""


@pytest.fixture(scope="module")
def libraries():
    return python_of("libraries")


def forked_after(first, **environment):
    """Returns a fixture: what was recorded of this test's program, which is run with those of all tests that take the
    fixture, in forks of one process that did `first`. That must not use the GPU, as some imports do."""

    @pytest.fixture
    def recorded(run_each, libraries, request):
        name = next(name for name in request.fixturenames if name.startswith("in_"))
        return run_each(request.node, name, libraries, f"import torch; {first}", **environment)

    return recorded


in_lightning = forked_after("import lightning")
in_transformers = forked_after("from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig")
in_timm = forked_after("import timm, timm.optim, timm.utils")
in_keras = forked_after("", KERAS_BACKEND="torch")


def roles_of(answer):
    assert answer.status == 0, answer.output + answer.errors
    framework, = answer.figures["frameworks"]
    assert framework["steps"] > 0
    device, = framework["devices"]
    return {share["name"]: share["bytes"] for share in device["roles"]}


@pytest.mark.parametrize("card", ["rtx4090", "h100"])
def test_accelerate_trains_a_network_in_mixed_precision(gpu, libraries, card):
    roles = roles_of(gpu(card, python=libraries, program=NETWORK + """
from accelerate import Accelerator
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
model = network()
optimizer = torch.optim.AdamW(model.parameters())
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
for x, y in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    accelerator.print(accelerator.gather(loss.detach()).mean().item())
"""))
    assert roles["weights"] == 4 * LAYERS
    assert roles["optimizer state"] == 8 * LAYERS


@pytest.mark.parametrize("precision", ["32-true", "16-mixed"])
@pytest.mark.program(NETWORK + """
import lightning
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = network()
    def training_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.network(batch[0]), batch[1])
        self.log("loss", loss, prog_bar=True)
        return loss
    def validation_step(self, batch, index):
        self.log("validation", torch.nn.functional.mse_loss(self.network(batch[0]), batch[1]))
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), fused=True)
lightning.Trainer(max_epochs=1, precision=precision, logger=False).fit(Module(), loader, loader)
""")
def test_lightning_trains_and_validates(in_lightning, precision):
    roles = in_lightning.roles
    assert roles["weights"] == 4 * LAYERS
    assert roles["optimizer state"] == 8 * LAYERS + 4 * 4  # and the step count of each weight


@pytest.mark.parametrize("options", [["bf16"], ["fp16", "gradient_checkpointing"]])
@pytest.mark.program("""
import torch
from transformers import AutoModelForCausalLM, GPT2Config, Trainer, TrainingArguments
class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, index):
        tokens = torch.randint(0, 1000, (128,))
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens}
model = AutoModelForCausalLM.from_config(
    GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000, bos_token_id=1, eos_token_id=2))
Trainer(model=model, train_dataset=Texts(), eval_dataset=Texts(), args=TrainingArguments(
    output_dir="out", per_device_train_batch_size=8, max_steps=2, logging_steps=1, report_to=[],
    dataloader_num_workers=2, save_strategy="steps", save_steps=1, eval_strategy="steps", eval_steps=1,
    optim="adamw_torch_fused", **dict.fromkeys(options, True))).train()
""")
def test_the_trainer_of_hugging_face_trains_evaluates_and_saves(in_transformers, options):
    roles = in_transformers.roles
    block = 128 * 4 * 128 + 3 * 128 * 128 + 128 * 128 + 4 * 128 * 128 + (3 + 1 + 4 + 1 + 4) * 128
    weights = (1000 + 1024) * 128 + 2 * block + 2 * 128
    tensors = 2 + 2 * 12 + 2
    assert roles["weights"] == 4 * weights
    assert roles["optimizer state"] == 8 * weights + 4 * tensors


@pytest.mark.program("""
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig
model = AutoModelForCausalLM.from_config(LlamaConfig(
    hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8,
    num_key_value_heads=4, vocab_size=1000), dtype=torch.bfloat16).cuda()
model = get_peft_model(
    model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
model.gradient_checkpointing_enable()
model.enable_input_require_grads()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), foreach=True)
tokens = torch.randint(0, 1000, (4, 256)).cuda()
for _ in range(3):
    model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
""")
def test_lora_keeps_gradients_and_state_of_its_adapters_alone(in_transformers):
    adapters = 4 * 8 * ((256 + 256) + (256 + 128))  # of the queries and of the values
    # The weights of the adapters are kept in float32.
    assert in_transformers.roles["optimizer state"] == 2 * 4 * adapters


def test_resnet_18_of_torchvision_trains_in_mixed_precision(gpu, libraries):
    answer = gpu("rtx4090", python=libraries, program="""
import sys
import torch
import torchvision
torch.backends.cudnn.benchmark = True
model = torchvision.models.resnet18().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
scaler = torch.amp.GradScaler()
images = torchvision.datasets.FakeData(32, (3, 64, 64), 1000, torchvision.transforms.ToTensor())
loader = torch.utils.data.DataLoader(images, 16, num_workers=2, pin_memory=True)
for x, y in loader:
    x = x.cuda(non_blocking=True).to(memory_format=torch.channels_last)
    y = y.cuda(non_blocking=True)
    with torch.autocast("cuda"):
        outputs = model(x)
        loss = torch.nn.functional.cross_entropy(outputs, y)
    if not torch.isfinite(loss):
        sys.exit("the loss is not finite")
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
""")
    weights = 11_689_512  # as torchvision's documentation says
    roles = roles_of(answer)
    assert roles["weights"] == roles["optimizer state"] == 4 * weights
    assert answer.figures["frameworks"][0]["steps"] == 2


# Small models, with which timm tests itself.
@pytest.mark.parametrize("name", ["test_vit", "test_convnext", "test_efficientnet"])
@pytest.mark.program("""
import timm
import torch
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3, NativeScaler
model = timm.create_model(name, num_classes=10).cuda().to(memory_format=torch.channels_last)
average = ModelEmaV3(model)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
scaler = NativeScaler()
images = torch.randn(4, 3, 160, 160, device="cuda").contiguous(memory_format=torch.channels_last)
labels = torch.randint(0, 10, (4,), device="cuda")
for _ in range(2):
    with torch.autocast("cuda", torch.float16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
    average.update(model)
print(4 * sum(p.numel() for p in model.parameters()))
""")
def test_timm_trains_with_its_own_optimizers(in_timm, name):
    roles, weights = in_timm.roles, int(*in_timm.printed)
    assert roles["weights"] == 2 * weights  # and their averages
    assert roles["optimizer state"] == 2 * weights


KERAS = """
import keras
import torch
model = keras.Sequential([
    keras.Input((512,)), keras.layers.Dense(2048, activation="gelu", name="up"), keras.layers.Dense(512, name="down")])
model.compile(keras.optimizers.Adam(), keras.losses.MeanSquaredError())
data = torch.randn(256, 512).cuda()
"""


@pytest.fixture(scope="module")
def keras(libraries):
    if not list(libraries.parents[1].glob("lib/*/site-packages/keras")):
        pytest.skip("libraries was set up without Keras: remove it, then scripts/setup --with libraries")


def check_roles_of_keras(recorded):
    roles = recorded.roles
    assert roles["weights"] == 4 * LAYERS
    assert abs(roles["optimizer state"] - 2 * 4 * LAYERS) < 1024  # and the count of steps
    modules = {module["name"]: module["roles"] for module in recorded.devices[0]["modules"]}
    assert modules["up"]["weights"] + modules["down"]["weights"] == roles["weights"]


@pytest.mark.program(KERAS + "model.fit(data, data, batch_size=32, epochs=1, verbose=0)")
def test_keras_trains_on_pytorch(keras, in_keras):
    assert in_keras.steps == 8
    check_roles_of_keras(in_keras)


@pytest.mark.program("""
import keras
import torch
given = keras.Input((64,))
made = given
for number in range(30):
    made = keras.layers.Dropout(0.1, name=f"drop_{number}")(made)
model = keras.Model(given, keras.layers.Dense(64)(made))
model.compile("sgd", "mse")
data = torch.zeros(8192, 64).cuda()
model.fit(data, data, batch_size=8192, epochs=1, verbose=0)
""")
def test_layers_of_a_deep_model_of_keras_have_their_names(keras, in_keras):
    """Keras calls each of them once to build the model."""
    modules = {module["name"] for module in in_keras.devices[0]["modules"]}
    assert {f"drop_{number}" for number in range(30)} <= modules
    assert "Dropout" not in modules


@pytest.mark.program(KERAS + """
for _ in range(4):
    model.zero_grad()
    loss = model.loss(data, model(data))
    loss.backward()
    variables = model.trainable_weights
    with torch.no_grad():
        model.optimizer.apply([variable.value.grad for variable in variables], variables)
""")
def test_keras_trains_on_pytorch_in_a_loop_of_ones_own(keras, in_keras):
    assert in_keras.steps == 4
    check_roles_of_keras(in_keras)


def test_bitsandbytes_is_imported(gpu, libraries):
    answer = gpu("rtx4090", python=libraries, program="""
import torch
import bitsandbytes
print(torch.ones(1 << 20, device="cuda").dtype, bitsandbytes.optim.AdamW8bit.__name__)
""")
    assert "torch.float32 AdamW8bit" in answer.output, answer.errors


def test_nvml_and_nvidia_smi_tell_what_is_held_and_that_there_are_no_links(gpu, libraries):
    answer = gpu("rtx4090", python=libraries, program="""
import subprocess
import pynvml
import torch
held = torch.zeros(32 << 20, dtype=torch.uint8, device="cuda")
pynvml.nvmlInit()
memory = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0))
free, total = torch.cuda.mem_get_info()
assert (memory.free, memory.total) == (free, total), (memory, free, total)
query = ["nvidia-smi", "--query-gpu=memory.used,clocks.max.sm", "--format=csv,noheader,nounits"]
used, clock = map(int, subprocess.run(query, capture_output=True, text=True, check=True).stdout.split(","))
assert used == (total - free) >> 20 >= 32, used
assert clock == pynvml.nvmlDeviceGetMaxClockInfo(pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.NVML_CLOCK_SM) > 0
links, temperature = pynvml.nvmlDeviceGetFieldValues(
    pynvml.nvmlDeviceGetHandleByIndex(0), [pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT, pynvml.NVML_FI_DEV_MEMORY_TEMP])
assert (links.nvmlReturn, links.value.uiVal) == (pynvml.NVML_SUCCESS, 0)
assert temperature.nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED
""")
    assert answer.status == 0, answer.errors


def test_a_notebook_that_takes_the_last_step_for_an_error_fits_and_names_its_cells(gpu, libraries):
    answer = gpu("t4", python=libraries, program="""
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
cells = ['''import torch
layer = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(layer.parameters())
''', '''while True:
    layer(torch.ones(64, 512, device="cuda")).sum().backward()
    optimizer.step()
''']
sys.exit(0 if all(shell.run_cell(cell, store_history=True).success for cell in cells) else 1)
""")
    assert answer.status == 0, answer.errors
    assert "\nFITS" in answer.output
    assert "In[1]:2\n" in answer.output and "In[2]:2\n" in answer.output


def test_deepspeed_shards_weights_over_two_ranks(gpu, libraries, tmp_path):
    """It compares integers that rank 0 sends."""
    if not list(libraries.parents[1].glob("lib/*/site-packages/deepspeed")):
        pytest.skip("DeepSpeed is not installed beside the libraries")
    (tmp_path / "train.py").write_text(NETWORK.partition("data =")[0] + """
import deepspeed
layers = network()
first, *others = layers.parameters()
groups = [{"params": [first]}, {"params": others}]
model, optimizer, _, _ = deepspeed.initialize(model=layers, model_parameters=groups, config={
    "train_micro_batch_size_per_gpu": 8, "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 1 << 20},
    "optimizer": {"type": "AdamW", "params": {"torch_adam": True}}})
for _ in range(2):
    model.backward(model(torch.randn(8, 512, device=model.device, dtype=torch.bfloat16)).sum())
    model.step()
""")
    answer = gpu("rtx4090", "--gpus", "2", python=libraries, arguments=["train.py"], program=TWO_RANKS)
    assert answer.status == 0, answer.errors
    for framework in answer.figures["frameworks"]:
        assert framework["steps"] == 2, "not one for each group of parameters"
        device, = framework["devices"]
        roles = {share["name"]: share["bytes"] for share in device["roles"]}
        assert abs(roles["optimizer state"] - 2 * 4 * LAYERS // 2) < 4096, "half of both moments, and padding"
        assert roles["weights"] == (4 + 2) * LAYERS // 2, "half of what is updated, and of its copy in bfloat16"
        assert abs(roles["gradient buckets"] - 2 * LAYERS // 2) < 4096, "half of all gradients, in bfloat16"
        assert roles["gathered weights"] >= 2 * 512 * 2048, "those of one layer at least, in bfloat16"


SOLVER = """
import torch
def _select_initial_step(func, t0, y0, order, rtol, atol, norm, f0=None):
    return (0.01 / norm(f0 / (atol + rtol * y0.abs()))) ** (1 / (order + 1))
def _compute_error_ratio(error_estimate, rtol, atol, y0, y1, norm):
    return norm(error_estimate / (atol + rtol * torch.max(y0.abs(), y1.abs())))
def solve(func, y, end, rtol, atol):
    norm = lambda tensor: tensor.pow(2).mean().sqrt()
    time, calls = torch.zeros((), device=y.device), 0
    step = _select_initial_step(func, time, y, 1, rtol, atol, norm, func(time, y))
    while time < end:
        assert time + step > time, "underflow"
        slope = func(time, y)
        ratio = _compute_error_ratio(step * slope, rtol, atol, y, y + step * slope, norm)
        calls += 1
        assert calls < 100, "too many steps"
        if ratio <= 1:
            time, y = time + step, y + step * slope
        step = step * (1 if ratio < 1 else 0.5)
    return y, calls
"""


def test_a_solver_of_torchdiffeq_takes_steps_of_one_length(gpu, pytorch, tmp_path):
    """The first one is that of an equation whose values are about 1: the root of 0.01 * (0.03 + 0.01) is 0.02."""
    (tmp_path / "torchdiffeq" / "_impl").mkdir(parents=True)
    (tmp_path / "torchdiffeq" / "_impl" / "rk_common.py").write_text(SOLVER)
    answer = gpu("rtx4090", python=pytorch, program="""
import torch
from torchdiffeq._impl.rk_common import solve
network = torch.nn.Linear(8, 8).cuda()
y, calls = solve(lambda time, y: network(y), torch.randn(4, 8).cuda(), 0.99, rtol=0.03, atol=0.01)
y.sum().backward()
print(calls)
""")
    assert printed_by(answer) == ["50"]
    assert "in steps of one length, since a virtual GPU does not compute their errors: rk_common.py" in answer.output
