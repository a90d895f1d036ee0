#include "harness/program/onednn/library_op.h"

#include <dnnl_debug.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <span>

#include "harness/base/error.h"
#include "harness/program/onednn/families.h"

// A function of the OpenMP runtime, declared here because clang's tools do not find gcc's omp.h.
extern "C" int omp_get_max_threads();

namespace headroom::onednn {
namespace {

struct Kind {
  LibraryRole role;
  Describe* describe;
};

const std::map<std::string_view, Kind>& kinds() {
  using enum LibraryRole;
  static const std::map<std::string_view, Kind> kinds = {
      {"convolution", {chooses, convolution}},
      {"convolution_backward_data", {chooses, convolution_backward_data}},
      {"convolution_backward_weights", {chooses, convolution_backward_weights}},
      {"linear", {chooses, linear}},
      {"linear_backward_data", {chooses, linear_backward_data}},
      {"linear_backward_weights", {chooses, linear_backward_weights}},
      {"batch_norm", {follows, batch_norm}},
      {"batch_norm_backward", {follows, batch_norm_backward}},
      {"batch_norm_inference", {follows, batch_norm_inference}},
      {"max_pool", {follows, max_pool}},
      {"max_pool_backward", {follows, max_pool_backward}},
      {"batched_matmul", {follows, batched_matmul}},
      {"gelu", {follows, gelu}},
      {"gelu_backward", {follows, gelu_backward}},
      {"tanh", {follows, tanh}},
      {"tanh_backward", {follows, tanh_backward}},
      {"transposed_convolution", {chooses, convolution_backward_data}},
      {"cast", {follows, reorder}},
      {"reorder", {follows, reorder}},
  };
  return kinds;
}

// Linear layers are the only kind that multiplies 8-bit codes; u8 operands of other kinds are
// indices.
bool multiplies_codes(const Op& op, const Layouts& inputs) {
  return op.kind.starts_with("linear") && inputs[0].get_data_type() == dnnl::memory::data_type::u8;
}

// The layouts that the primitive is asked for.
Layouts widened(Layouts layouts, bool all) {
  for (Layout& layout : layouts) {
    if (!all && layout.get_data_type() != dnnl::memory::data_type::f16) continue;
    const bool chosen = layout.get_format_kind() != dnnl::memory::format_kind::any;
    layout = chosen ? in_type(layout, DType::f32) : freed(layout, dnnl::memory::data_type::f32);
  }
  return layouts;
}

// Restores the stored layouts of operands that were widened.
void narrow(std::vector<LibraryOperand>& operands, const Layouts& kept, const Layouts& asked) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (kept[i].get_data_type() == asked[i].get_data_type()) continue;
    operands[i].seen = operands[i].of_primitive();
    operands[i].layout = in_type(operands[i].layout, kept[i]);
  }
}

}  // namespace

Bytes LibraryOp::workspace_bytes() const {
  Bytes bytes = descriptor.query_md(dnnl::query::scratchpad_md).get_size();
  for (const auto* operands : {&inputs, &outputs})
    for (const LibraryOperand& operand : *operands)
      if (operand.is_emulated()) bytes = copy_begin(bytes) + operand.of_primitive().get_size();
  return bytes;
}

LibraryRole library_role(std::string_view kind) {
  const auto found = kinds().find(kind);
  return found == kinds().end() ? LibraryRole::none : found->second.role;
}

LibraryOp describe(const Op& op, const std::vector<Layout>& inputs,
                   const std::vector<Layout>& outputs) {
  try {
    const bool codes = multiplies_codes(op, inputs);
    const Layouts asked = widened(inputs, codes), answers = widened(outputs, codes);
    LibraryOp described = kinds().at(op.kind).describe(op, asked, answers);
    narrow(described.inputs, inputs, asked);
    narrow(described.outputs, outputs, answers);
    if (codes)
      for (const Layout& scale : std::span(inputs).last(2)) described.inputs.push_back({0, scale});
    return described;
  } catch (const dnnl::error& error) {
    throw DeviceError(
        fmt::format("{} ({}): oneDNN has no implementation: {}", op.name, op.kind, error.what()));
  }
}

std::string library_here() {
  const dnnl_version_t& version = *dnnl_version();
  std::string_view isa = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
  if (isa.starts_with("cpu_isa_")) isa.remove_prefix(8);
  return fmt::format("{}.{}.{},{},threads={}", version.major, version.minor, version.patch, isa,
                     omp_get_max_threads());
}

const dnnl::primitive_attr& user_scratchpad() {
  static const dnnl::primitive_attr attributes = [] {
    dnnl::primitive_attr made;
    made.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return made;
  }();
  return attributes;
}

}  // namespace headroom::onednn
