// The pairs of networks that the workload gan can train: what a model adds to it.
#pragma once

#include "workloads/gan_layers.h"
#include "workloads/preset.h"

namespace headroom {

struct GanModel {
  std::map<std::int64_t, std::int64_t> widths;  // by image: the widths as published
  std::int64_t image, latent;                   // as published
  Presets presets;
  // noise [batch, latent, 1, 1] → images [batch, 3, image, image] in −1 … 1.
  ValueId (*generate)(GanLayers& layers, const GanSize& size, ValueId noise);
  // images → logits [batch, 1, 1, 1], positive for real.
  ValueId (*discriminate)(GanLayers& layers, const GanSize& size, ValueId images);
};

GanModel dcgan();
GanModel resnet_gan();

}  // namespace headroom
