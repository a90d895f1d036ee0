"""Runs `tune` of torchtune (1814feb17), started in its folder, on random texts and weights whose values nobody chose.

torchtune_recipe.py run RECIPE --config NAME [KEY=VALUE...]"""

import sys

sys.path.insert(0, ".")

import torch
import torchtune.datasets
import torchtune.models.llama3
import torchtune.models.llama3_1
import torchtune.models.llama3_2
import torchtune.training
from torchtune._cli.tune import main

PACKS, LONGEST = 8, 400  # texts in all, by how many fill one, and tokens of a text
MODELS = {"Llama-3.2-3B-Instruct": "llama3_2.llama3_2_3b", "Meta-Llama-3.1-8B-Instruct": "llama3_1.llama3_1_8b"}


class Tokenizer:
    pad_id = 0

    def __init__(self, max_seq_len, **_):
        self.max_seq_len = max_seq_len


def texts(tokenizer, **_):
    """Returns texts of random lengths, packed as torchtune does."""
    lengths = torch.randint(50, LONGEST, (PACKS * tokenizer.max_seq_len * 2 // LONGEST,)).tolist()
    samples = [{"tokens": [1] * length, "labels": [1] * length} for length in lengths]
    return torchtune.datasets.PackedDataset(samples, max_seq_len=tokenizer.max_seq_len)


class Checkpointer:
    """Stands for the files of a model."""

    def __init__(self, checkpoint_dir, **_):
        family, self.model = MODELS[checkpoint_dir.strip("/").split("/")[-1]].split(".")
        self.family = getattr(torchtune.models, family)

    def load_checkpoint(self):
        with torch.device("meta"):
            state = getattr(self.family, self.model)().state_dict()
        return {"model": {name: torch.empty(value.shape, dtype=torch.bfloat16) for name, value in state.items()}}

    def save_checkpoint(self, *_, **__):
        pass


torchtune.models.llama3.llama3_tokenizer = Tokenizer
torchtune.datasets.alpaca_dataset = torchtune.datasets.alpaca_cleaned_dataset = texts
torchtune.training.FullModelHFCheckpointer = Checkpointer
main()
