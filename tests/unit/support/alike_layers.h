// A network of identical layers, each a product and a nonlinearity, so that what passes between
// layers and what the backward pass reads can be computed by hand.
#pragma once

#include <string>

#include "harness/program/program.h"

namespace headroom {

inline Program alike_layers(std::int64_t layers, std::int64_t batch, std::int64_t width) {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  ValueId x = build.input("x", {batch, width}, DType::f32);
  const ValueId labels = build.input("labels", {batch}, DType::s32);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = "layer." + std::to_string(i);
    const ValueId weight =
        build.persistent(name + ".weight", {width, width}, Role::weight, {Fill::normal, 0.3});
    const ValueId bias = build.persistent(name + ".bias", {width}, Role::weight, {});
    x = build.emit_one("linear", name + ".linear", {x, weight, bias});
    x = build.emit_one("gelu", name + ".gelu", {x});
  }
  program.loss = build.emit("softmax_cross_entropy", "loss", {x, labels})[0];
  program.results = {program.loss};
  return program;
}

}  // namespace headroom
