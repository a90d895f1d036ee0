"""Runs one experiment of PEFT's comparison of methods, by its own programs, on texts that only have their lengths.

peft_method.py EXPERIMENT MODEL LONGEST, started in method_comparison/MetaMathQA of PEFT. EXPERIMENT is a name as in
lora/llama-3.2-3B-rank32, MODEL a folder with the configuration and the weights. Two buckets of 20 batches are trained
on; the longest text of the second one has LONGEST tokens. Nothing is generated. Prints the peak of reserved MiB."""

import sys

sys.path.insert(0, ".")

import numpy
import run
import torch
import transformers

EOS = 128001
BATCHES = 20  # of a bucket, as the programs form them
MEAN = 209  # tokens of a text: what their logs say


class Texts:
    """Texts of random tokens: lengths spread as the logarithm of normal numbers, about MEAN tokens."""

    def __init__(self, longest):
        chance = numpy.random.default_rng(0)
        lengths = chance.lognormal(numpy.log(MEAN) - 0.1, 0.45, 2 * 4 * BATCHES).astype(int)
        lengths[lengths >= longest] = MEAN
        lengths[-1] = longest
        self.texts = [chance.integers(0, 128000, length).tolist() for length in lengths]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, part):
        texts = self.texts[part]
        return {"input_ids": texts, "attention_mask": [[1] * len(text) for text in texts]}


class Tokenizer:
    """Pads; it knows no text."""

    pad_token_id = eos_token_id = EOS

    def pad(self, batch, **_):
        longest = max(map(len, batch["input_ids"]))
        padding = {"input_ids": EOS, "attention_mask": 0}
        padded = {name: [row + [padding[name]] * (longest - len(row)) for row in rows] for name, rows in batch.items()}
        return transformers.BatchEncoding(padded, tensor_type="pt")

    def __call__(self, texts, return_tensors=None, **_):
        ids = [[1] * 60 for _ in ([texts] if isinstance(texts, str) else texts)]
        return transformers.BatchEncoding({"input_ids": ids, "attention_mask": ids}, tensor_type=return_tensors)


def main():
    experiment, model, longest = sys.argv[1:]
    settings = run.get_train_config

    def shorter_settings(path):
        config = settings(path)
        config.model_id, config.max_steps, config.eval_steps = model, 2 * BATCHES, 2 * BATCHES
        return config

    run.get_train_config = shorter_settings
    run.get_tokenizer = lambda **_: Tokenizer()
    run.get_base_model_info = run.get_dataset_info = lambda _: None
    run.get_wiki_small = lambda: []
    run.get_train_valid_test_datasets = lambda **_: (Texts(int(longest)), [], [])
    run.calculate_mean_per_token_loss = lambda **_: 1.5
    run.evaluate = lambda **_: (["0"], ["0"])
    run.get_accuracy = lambda **_: 0
    run.get_file_size = lambda *_, **__: 0
    run.get_peft_branch = lambda: "main"
    run.print_verbose = print

    def print_peak(*, train_result, **_):
        if train_result.error_msg:
            sys.exit(train_result.error_msg)
        print(f"trainable: {train_result.num_trainable_params} "
              f"peak reserved: {torch.cuda.max_memory_reserved() // 2**20} MiB", flush=True)  # fmt: skip

    run.log_results = print_peak
    run.main(path_experiment=f"experiments/{experiment}", experiment_name=experiment, clean=True, bucket_name=None)


if __name__ == "__main__":
    main()
