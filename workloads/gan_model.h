// A pair of networks that the workload gan can train.
#pragma once

#include "workloads/gan_layers.h"
#include "workloads/preset.h"

namespace headroom {

struct GanModel {
  std::map<std::int64_t, std::int64_t> widths;  // by image size: the published widths
  std::int64_t image, latent;                   // the published values
  Presets presets;
  // noise [batch, latent, 1, 1] → images [batch, 3, image, image] in −1 … 1.
  ValueId (*generate)(GanLayers& layers, const GanSize& size, ValueId noise);
  // images → logits [batch, 1, 1, 1], positive for real images.
  ValueId (*discriminate)(GanLayers& layers, const GanSize& size, ValueId images);
};

GanModel dcgan();
GanModel resnet_gan();

}  // namespace headroom
