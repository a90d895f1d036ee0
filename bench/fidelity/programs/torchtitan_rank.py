"""Runs train.py of torchtitan (9dec370), started in its folder, on random tokens with the vocabulary of Llama 3."""

import runpy
import sys

sys.path.insert(0, ".")

import torch
import torchtitan.datasets


class Tokenizer:
    n_words = 128256


def batches(dataset, path, tokenizer, batch, length, *_):
    while True:
        yield torch.randint(Tokenizer.n_words, (batch, length)), torch.randint(Tokenizer.n_words, (batch, length))


torchtitan.datasets.build_tokenizer = lambda *_: Tokenizer()
torchtitan.datasets.build_hf_data_loader = batches
sys.argv[0] = "train.py"
runpy.run_path("train.py", run_name="__main__")
