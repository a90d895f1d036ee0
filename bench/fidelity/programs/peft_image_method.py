"""Runs one experiment of PEFT's comparison of methods on images, by its own programs, on images and weights without values.

peft_image_method.py EXPERIMENT, started in method_comparison/image-gen of PEFT. EXPERIMENT is a name as in
lora/flux2-klein-default. FLUX.2 klein 4B is made from its dimensions. 20 steps are trained, and nothing is generated.
Prints the peak of reserved MiB in training."""

import sys
import types

sys.path.insert(0, ".")

import diffusers
import run
import torch
import transformers
import utils

STEPS, IMAGES = 20, 14  # images that are trained on: all but the 6 for evaluation


class Tokenizer:
    """Knows no text: each prompt fills its place."""

    def apply_chat_template(self, *_, **__):
        return ""

    def __call__(self, _, max_length, **__):
        ids = torch.ones(1, max_length, dtype=torch.long)
        return {"input_ids": ids, "attention_mask": ids.clone()}


def without_values(make):
    with torch.device("meta"):
        network = make()
    return network.to(torch.bfloat16).to_empty(device="cpu")


def pipeline(*_, **__):
    text = transformers.Qwen3Config(
        vocab_size=151936, hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, tie_word_embeddings=True)  # fmt: skip
    transformer = dict(in_channels=128, num_layers=5, num_single_layers=20, num_attention_heads=24, attention_head_dim=128,
                       joint_attention_dim=3 * 2560, guidance_embeds=False)  # fmt: skip
    return diffusers.Flux2KleinPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=without_values(diffusers.AutoencoderKLFlux2),
        text_encoder=without_values(lambda: transformers.Qwen3ForCausalLM(text)),
        tokenizer=Tokenizer(),
        transformer=without_values(lambda: diffusers.Flux2Transformer2DModel(**transformer)),
    )


def dataset(*, train_config, **_):
    images = [torch.zeros(3, train_config.resolution, train_config.resolution) for _ in range(IMAGES)]
    return {"prompts": [""] * IMAGES, "pixel_values": images, "repeats": train_config.repeats}, [], []


def encoder(*_):
    return None, transformers.Dinov2Model(transformers.Dinov2Config()).to("cuda")


def print_peak(*, train_result, **_):
    if train_result.error_msg:
        sys.exit(train_result.error_msg)
    print(f"trainable: {train_result.num_trainable_params} "
          f"peak reserved: {train_result.accelerator_memory_max_train // 2**20} MiB", flush=True)  # fmt: skip
    sys.exit()


def main():
    settings = run.get_train_config

    def shorter_settings(path):
        config = settings(path)
        config.max_steps, config.eval_steps, config.sample_image_prompts = STEPS, STEPS // 2, []
        return config

    utils.Flux2KleinPipeline = types.SimpleNamespace(from_pretrained=pipeline)
    run.get_train_config = shorter_settings
    run.get_base_model_info = run.get_dataset_info = lambda _: None
    run.get_train_valid_test_datasets, run.get_dino_encoder = dataset, encoder
    run.evaluate = run.measure_drift = lambda **_: 0.0
    run.get_file_size = lambda *_, **__: 0
    run.get_peft_branch = lambda: "main"
    run.log_results, run.print_verbose = print_peak, print
    name = sys.argv[1]
    run.main(path_experiment=f"experiments/{name}", experiment_name=name, clean=True, bucket_name=None)


if __name__ == "__main__":
    main()
