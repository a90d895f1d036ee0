"""Trains a language model of Hugging Face's for a few steps, as the measured runs did: weights, gradients
and optimizer state in float32, random tokens. Weights are made from the configuration, not downloaded."""

import argparse

import torch

import without_values

MODELS = {
    "distilgpt2": lambda t: t.GPT2LMHeadModel(t.GPT2Config(n_layer=6)),
    "Cerebras-GPT-111M": lambda t: t.GPT2LMHeadModel(
        t.GPT2Config(n_layer=10, n_inner=3072, activation_function="gelu", n_positions=2048)
    ),
    "gpt-neo-125M": lambda t: t.GPTNeoForCausalLM(
        t.GPTNeoConfig(
            hidden_size=768, num_layers=12, num_heads=12, attention_types=[[["global", "local"], 6]]
        )
    ),
    "Qwen3-4B": lambda t: t.Qwen3ForCausalLM(
        t.Qwen3Config(
            vocab_size=151936,
            hidden_size=2560,
            intermediate_size=9728,
            num_hidden_layers=36,
            num_attention_heads=32,
            num_key_value_heads=8,
            head_dim=128,
            tie_word_embeddings=True,
        )
    ),
    "DeepSeek-R1-Distill-Qwen-1.5B": lambda t: t.Qwen2ForCausalLM(
        t.Qwen2Config(
            vocab_size=151936,
            hidden_size=1536,
            intermediate_size=8960,
            num_hidden_layers=28,
            num_attention_heads=12,
            num_key_value_heads=2,
            tie_word_embeddings=False,
        )
    ),
}


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("optimizer", help="a class of torch.optim")
    parser.add_argument("batch", type=int)
    parser.add_argument("--sequence", type=int, default=128, help="tokens per sample")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument(
        "--zero-grad", choices=("step_start", "before_backward", "after_update"), required=True
    )
    parser.add_argument("--no-mask", action="store_true", help="leave out the mask, which masks nothing")
    return parser.parse_args(arguments)


def make_model(options):
    without_values.install()
    import transformers

    return MODELS[options.model](transformers)


def train(options):
    model = make_model(options).train()
    optimizer = getattr(torch.optim, options.optimizer)(model.parameters(), lr=1e-3)
    model.to("cuda")
    for _ in range(options.steps):
        if options.zero_grad == "step_start":
            optimizer.zero_grad()
        tokens = torch.randint(5, model.config.vocab_size - 5, (options.batch, options.sequence))
        batch = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens}
        if options.no_mask:
            del batch["attention_mask"]
        batch = {name: tensor.to("cuda") for name, tensor in batch.items()}
        outputs = model(**batch)
        if options.zero_grad == "before_backward":
            optimizer.zero_grad()
        outputs.loss.backward()
        optimizer.step()
        if options.zero_grad == "after_update":
            optimizer.zero_grad()


if __name__ == "__main__":
    train(parse())
