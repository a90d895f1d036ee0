"""Trains for a few steps what users of PyTorch's libraries write: libraries.py PROGRAM. The data are random, with a
fixed seed; nothing is downloaded."""

import sys

import torch
from torch import nn
from torch.nn import functional


def train(model, loss_of, steps=4, optimizer=None, precision=None):
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        with torch.autocast("cuda", precision, enabled=precision is not None):
            loss = loss_of(model)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def tokens(batch, length, vocabulary=1000):
    return torch.randint(2, vocabulary, (batch, length)).cuda()


def images(batch, size):
    return torch.randn(batch, 3, size, size).cuda()


def predict_tokens(model, batch, length, **options):
    """A language model of Hugging Face that predicts the tokens it is given."""
    words = tokens(batch, length)
    train(model.cuda(), lambda m: m(input_ids=words, labels=words).loss, **options)


def llama():
    import transformers

    config = transformers.LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8,
                                      num_attention_heads=16, num_key_value_heads=4)
    model = transformers.LlamaForCausalLM(config).bfloat16().cuda()
    predict_tokens(model, 4, 1024, optimizer=torch.optim.AdamW(model.parameters(), fused=True))


def mixtral():
    import transformers

    config = transformers.MixtralConfig(vocab_size=8000, hidden_size=512, intermediate_size=1024, num_hidden_layers=4,
                                        num_attention_heads=8, num_key_value_heads=4, num_local_experts=8)
    predict_tokens(transformers.MixtralForCausalLM(config).bfloat16(), 4, 512)


def t5():
    import transformers

    config = transformers.T5Config(d_model=512, d_ff=2048, num_layers=6, num_heads=8, d_kv=64,
                                  decoder_start_token_id=0)
    predict_tokens(transformers.T5ForConditionalGeneration(config), 8, 256)


def generate():
    import transformers

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).cuda().eval()
    model.generate(tokens(8, 32), max_new_tokens=64, min_new_tokens=64, do_sample=True, pad_token_id=0)


def lora():
    import peft
    import transformers

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    model = peft.get_peft_model(model, peft.LoraConfig(r=16, target_modules=["c_attn"], fan_in_fan_out=True))
    predict_tokens(model, 8, 512, precision=torch.bfloat16)


def trainer():
    """The Trainer of Hugging Face, on sentences of 16 to 256 words, two batches an update."""
    import tempfile

    import transformers

    lengths = [16 + 31 * i % 241 for i in range(64)]
    data = [{"input_ids": torch.arange(2, 2 + n), "attention_mask": torch.ones(n, dtype=torch.long), "labels": n % 2}
            for n in lengths]

    def collate(rows):
        padded = {k: nn.utils.rnn.pad_sequence([r[k] for r in rows], batch_first=True)
                  for k in ("input_ids", "attention_mask")}
        return {**padded, "labels": torch.tensor([r["labels"] for r in rows])}

    arguments = transformers.TrainingArguments(
        tempfile.mkdtemp(), per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=4, bf16=True,
        report_to=[], save_strategy="no", logging_steps=1, seed=0)
    model = transformers.BertForSequenceClassification(transformers.BertConfig(num_hidden_layers=6))
    transformers.Trainer(model, arguments, train_dataset=data, data_collator=collate).train()


def speech():
    """Speech to letters: convolutions over time, attention, and the loss of connectionist temporal classification."""
    import transformers

    config = transformers.Wav2Vec2Config(num_hidden_layers=4, apply_spec_augment=False)
    sound, letters = torch.randn(4, 32000).cuda(), tokens(4, 20, 30)
    train(transformers.Wav2Vec2ForCTC(config).cuda(), lambda m: m(sound, labels=letters).loss)


def timm_vit():
    import timm

    model = timm.create_model("vit_small_patch16_224", drop_path_rate=0.1).cuda()
    average = timm.utils.ModelEmaV3(model)
    x, y = images(64, 224), tokens(1, 64)[0]
    train(model, lambda m: functional.cross_entropy(m(x), y), precision=torch.bfloat16)
    average.update(model)


def timm_convnext():
    import timm

    model = timm.create_model("convnextv2_nano").cuda().to(memory_format=torch.channels_last)
    x, y = images(32, 224).to(memory_format=torch.channels_last), tokens(1, 32)[0]
    train(model, lambda m: functional.cross_entropy(m(x), y), precision=torch.bfloat16)


def segmentation():
    import torchvision

    model = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21)
    x, y = images(4, 256), torch.randint(0, 21, (4, 256, 256)).cuda()
    train(model.cuda(), lambda m: functional.cross_entropy(m(x)["out"], y))


def detection():
    """Faster R-CNN: the number of boxes depends on the values."""
    import torchvision

    model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=5)
    boxes = torch.tensor([[10.0, 10.0, 90.0, 90.0], [40.0, 60.0, 200.0, 220.0]]).cuda()
    targets = [{"boxes": boxes, "labels": torch.tensor([1, 2]).cuda()}] * 2
    pair = list(images(2, 256))
    train(model.cuda(), lambda m: sum(m(pair, targets).values()))


def volumes():
    """Three-dimensional convolutions, as for medical images."""
    def block(before, after):
        return nn.Sequential(nn.Conv3d(before, after, 3, padding=1), nn.InstanceNorm3d(after), nn.LeakyReLU(),
                             nn.MaxPool3d(2))

    model = nn.Sequential(block(1, 16), block(16, 32), block(32, 64), nn.Upsample(scale_factor=8),
                          nn.Conv3d(64, 2, 1)).cuda()
    x, y = torch.randn(2, 1, 96, 96, 96).cuda(), torch.randint(0, 2, (2, 96, 96, 96)).cuda()
    train(model, lambda m: functional.cross_entropy(m(x), y))


def unet():
    """The denoiser of a diffusion model: convolutions, group normalisation and attention, in fp16."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList(nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.GroupNorm(8, b), nn.SiLU())
                                      for a, b in ((3, 64), (64, 128), (128, 256)))
            self.attention = nn.MultiheadAttention(256, 8, batch_first=True)
            self.up = nn.ModuleList(nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1), nn.GroupNorm(1, b), nn.SiLU())
                                    for a, b in ((256, 128), (256, 64), (128, 3)))

        def forward(self, x):
            kept = []
            for layer in self.down:
                x = layer(x)
                kept.append(x)
            flat = x.flatten(2).transpose(1, 2)
            x = (flat + self.attention(flat, flat, flat)[0]).transpose(1, 2).view_as(x)
            x = self.up[0](x)
            x = self.up[1](torch.cat([x, kept[1]], 1))
            return self.up[2](torch.cat([x, kept[0]], 1))

    noise = images(16, 128)
    train(Net().cuda(), lambda m: functional.mse_loss(m(noise).float(), noise), precision=torch.float16)


def lightning():
    import lightning as L

    class Task(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 2048), nn.ReLU(), nn.Linear(2048, 10))

        def training_step(self, batch, _):
            return functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    data = torch.utils.data.TensorDataset(torch.randn(1024, 3, 32, 32), torch.randint(0, 10, (1024,)))
    loader = torch.utils.data.DataLoader(data, 256, num_workers=2, pin_memory=True)
    L.Trainer(max_steps=4, precision="bf16-mixed", logger=False, enable_checkpointing=False, devices=1,
              enable_progress_bar=False).fit(Task(), loader)  # fmt: skip


def graph():
    """Convolution and attention over a graph of 50,000 nodes."""
    from torch_geometric.nn import GATConv, GCNConv

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = GCNConv(128, 256), GATConv(256, 16, heads=4, concat=False)

        def forward(self, x, edges):
            return self.second(functional.relu(self.first(x, edges)), edges)

    x, edges = torch.randn(50000, 128).cuda(), torch.randint(0, 50000, (2, 400000)).cuda()
    classes = torch.randint(0, 16, (50000,)).cuda()
    train(Net().cuda(), lambda m: functional.cross_entropy(m(x, edges), classes))


def ode():
    import torchdiffeq

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64))

        def forward(self, t, y):
            return self.net(y)

    start, times = torch.randn(4096, 64).cuda(), torch.linspace(0, 1, 11).cuda()
    train(Net().cuda(), lambda m: torchdiffeq.odeint(m, start, times, method="rk4")[-1].square().mean())


def gaussian_process():
    """The exact likelihood of 3,000 points, by a Cholesky factor."""
    x, y = torch.rand(3000, 4).cuda(), torch.randn(3000).cuda()
    scale = nn.Parameter(torch.ones(4, device="cuda"))

    def loss(_):
        kernel = torch.exp(-torch.cdist(x / scale, x / scale).square() / 2) + 0.1 * torch.eye(3000, device="cuda")
        return -torch.distributions.MultivariateNormal(torch.zeros_like(y), kernel).log_prob(y)

    model = nn.Module()
    model.scale = scale
    train(model, loss)


def decompositions():
    """Eigenvalues, singular values, a QR decomposition and linear equations."""
    a = torch.randn(16, 512, 512).cuda().requires_grad_()
    torch.linalg.solve(a + 30 * torch.eye(512, device="cuda"), a).sum().backward()
    torch.linalg.qr(a)[1].diagonal(dim1=1, dim2=2).sum().backward()
    torch.linalg.eigvalsh(a @ a.mT).sum().backward()
    torch.linalg.svdvals(a[0]).sum().backward()


def spectral():
    """A Fourier neural operator: filters on the spectrum of an image."""
    weights = nn.ParameterList(nn.Parameter(torch.randn(32, 32, 16, 16, dtype=torch.cfloat) / 32) for _ in range(4))
    model = nn.Module()
    model.weights, model.first, model.last = weights, nn.Conv2d(3, 32, 1), nn.Conv2d(32, 1, 1)
    x = images(16, 128)

    def loss(m):
        y = m.first(x)
        for w in m.weights:
            spectrum = torch.fft.rfft2(y)
            filtered = torch.zeros_like(spectrum)
            filtered[..., :16, :16] = torch.einsum("bihw,iohw->bohw", spectrum[..., :16, :16], w)
            y = functional.gelu(torch.fft.irfft2(filtered, s=y.shape[-2:]))
        return m.last(y).square().mean()

    train(model.cuda(), loss)


def long_attention():
    """Attention over 8,192 places, once causal and once with a mask, which PyTorch's flash attention does not take."""
    width, heads = 512, 8
    model = nn.Linear(width, 3 * width).cuda()
    x, mask = torch.randn(2, 8192, width).cuda(), torch.ones(8192, 8192, dtype=torch.bool).tril().cuda()

    def loss(m):
        q, k, v = m(x).view(2, 8192, 3, heads, -1).permute(2, 0, 3, 1, 4)
        causal = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return (causal + functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)).square().mean()

    train(model, loss, precision=torch.bfloat16)


def sparse_embedding():
    model = nn.EmbeddingBag(1_000_000, 64, sparse=True).cuda()
    words = tokens(4096, 20, 1_000_000)
    adam = torch.optim.SparseAdam(model.parameters())
    for _ in range(4):
        model(words).square().mean().backward()
        adam.step()
        adam.zero_grad()


def graphed():
    """Steps that a CUDA graph replays."""
    model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(6)]).cuda()
    graphed_model = torch.cuda.make_graphed_callables(model, (torch.randn(256, 2048).cuda(),))
    x = torch.randn(256, 2048).cuda()
    train(graphed_model, lambda m: m(x).square().mean())


PROGRAMS = {function.__name__: function for function in (
    llama, mixtral, t5, generate, lora, trainer, speech, timm_vit, timm_convnext, segmentation, detection, volumes,
    unet, lightning, graph, ode, gaussian_process, decompositions, spectral, long_attention, sparse_embedding, graphed)}

if __name__ == "__main__":
    torch.manual_seed(0)
    PROGRAMS[sys.argv[1]]()
    torch.cuda.synchronize()
