"""Fine-tunes BERT-large as Hugging Face's Trainer did in January 2022: 512 random tokens a sequence, two
classes, gradients set to zero and not to None, attention without SDPA, a softmax that keeps its input,
optimizers that take one parameter after the other. Weights are made from the configuration, not downloaded."""

import argparse

import torch

import without_values


class KeepingSoftmax(torch.autograd.Function):
    """Softmax as PyTorch differentiated it until 2022: the backward pass was given the input, too, of which it
    needs the type only."""

    @staticmethod
    def forward(context, x, dim):
        result = torch.softmax(x, dim)
        context.dim = dim
        context.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(context, gradient):
        x, result = context.saved_tensors
        return torch._softmax_backward_data(gradient, result, context.dim, x.dtype), None


def softmax(x, dim=None, **_):
    """Stands in for torch.nn.functional.softmax. Autocast computes it in float32."""
    if torch.is_autocast_enabled("cuda"):
        x = x.float()
    with torch.autocast("cuda", enabled=False):
        return KeepingSoftmax.apply(x, dim)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("optimizer", choices=("AdamW", "Adafactor", "Adam8bit"))
    parser.add_argument("batch", type=int)
    parser.add_argument("--sequence", type=int, default=512, help="tokens per sample")
    parser.add_argument("--accumulate", type=int, default=1, help="batches per optimizer step")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    return parser.parse_args(arguments)


def make_model(_):
    without_values.install()
    import transformers

    config = transformers.BertConfig(
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        attn_implementation="eager",
    )
    return transformers.BertForSequenceClassification(config)


def make_optimizer(name, parameters):
    if name == "Adam8bit":
        import bitsandbytes

        return bitsandbytes.optim.Adam8bit(parameters, lr=5e-5)
    if name == "Adafactor":
        import transformers

        return transformers.Adafactor(parameters, lr=5e-5, scale_parameter=False, relative_step=False)
    return torch.optim.AdamW(parameters, lr=5e-5, foreach=False)


def train(options):
    torch.nn.functional.softmax = softmax
    torch.ones((1, 1)).to("cuda")
    model = make_model(options).to("cuda").train()
    if options.checkpoint:
        model.gradient_checkpointing_enable({"use_reentrant": True})
    parameters = list(model.parameters())
    optimizer = make_optimizer(options.optimizer, parameters)
    scaler = torch.amp.GradScaler("cuda", enabled=options.fp16)
    for _ in range(options.steps):
        for _ in range(options.accumulate):
            tokens = torch.randint(100, 30000, (options.batch, options.sequence))
            labels = torch.zeros(options.batch, dtype=torch.long)
            inputs = {"input_ids": tokens.to("cuda"), "labels": labels.to("cuda")}
            with torch.autocast("cuda", dtype=torch.float16, enabled=options.fp16):
                loss = model(**inputs).loss
            scaler.scale(loss / options.accumulate).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=False)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=False)


if __name__ == "__main__":
    train(parse())
