"""Runs `litgpt` (00af8b0d), started in its folder, on random texts that are all as long as the longest one may be.

litgpt_finetune.py finetune_lora --config FILE [OPTION...]: ends when litgpt would save what it trained."""

import sys
import types
from pathlib import Path

sys.path.insert(0, ".")
# bitsandbytes 0.42 imports this part of Triton, which later versions lack, and uses it in no layer of 4 bits.
sys.modules["triton.ops"] = sys.modules["triton.ops.matmul_perf_model"] = types.SimpleNamespace(
    early_config_prune=None, estimate_matmul_time=None
)

import torch
from torch.utils.data import DataLoader
import lightning
import litgpt.__main__
import litgpt.data.base
import litgpt.utils
from litgpt import Config, GPT
from litgpt.data import Alpaca2k

TEXTS = 64


def texts(data):
    """Returns batches of texts as Alpaca2k does: padded to the longest one, which is max_seq_length here."""
    ids = torch.randint(1000, (data.max_seq_length,))
    pad = litgpt.data.base.get_sft_collate_fn(max_seq_length=data.max_seq_length)
    return DataLoader([{"input_ids": ids, "labels": ids}] * TEXTS, batch_size=data.batch_size, collate_fn=pad)


def weights(file):
    """Returns weights of the model's shapes, whose values nobody chose, in place of those of a file."""
    config = Config.from_name(file.parent.name)
    with torch.device("meta"):
        state = GPT(config).state_dict()
    return {name: torch.empty(value.shape, dtype=torch.bfloat16) for name, value in state.items()}


class Tokenizer:
    eos_id = 2

    def __init__(self, _):
        pass

    def encode(self, text, device=None, **_):
        return torch.randint(1000, (len(text) // 4,), device=device)

    def decode(self, ids):
        return f"{len(ids)} tokens"


def checkpoint(model_name, **_):
    """Makes a folder with the configuration of a model, in place of one with its weights."""
    place = Path("checkpoints", Path(model_name).name)
    place.mkdir(parents=True, exist_ok=True)
    litgpt.utils.save_config(Config.from_name(place.name), place)
    return place


Alpaca2k.prepare_data = Alpaca2k.setup = lambda *_, **__: None
Alpaca2k.train_dataloader = Alpaca2k.val_dataloader = texts
lightning.Fabric.save = lambda *_, **__: sys.exit()
litgpt.utils.lazy_load = weights
for method in sys.modules["litgpt.finetune.lora"], sys.modules["litgpt.finetune.full"]:
    method.Tokenizer = Tokenizer
    method.auto_download_checkpoint = checkpoint
    method.check_valid_checkpoint_dir = lambda _: None
litgpt.__main__.main()
