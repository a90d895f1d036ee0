"""Trains four layers and keeps something of every step, as programs do that leak.

keep: nothing, losses (after their backward pass), graphs (losses without a backward pass), outputs (of the last
layer) or floats.
"""

import card

given = card.options(keep="nothing", steps=24)
card.forget_settings("PYTORCH_", "TORCH_", "CUDA_")

import torch  # noqa: E402

KEPT = {
    "nothing": lambda outputs, loss: None,
    "losses": lambda outputs, loss: loss,
    "graphs": lambda outputs, loss: loss,
    "outputs": lambda outputs, loss: outputs,
    "floats": lambda outputs, loss: float(loss),
}
keep = KEPT[card.one_of("keep", given["keep"], KEPT)]
layers = [torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()) for _ in range(4)]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.zeros(512, 512, device="cuda")
growth = card.Growth(torch.cuda.memory_allocated)
kept = []
for _ in range(given["steps"]):
    outputs = model(batch)
    loss = (outputs**2).mean()
    if given["keep"] != "graphs":
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    kept.append(keep(outputs, loss))
    growth.read()
growth.report(f"PyTorch {torch.__version__}")
