#include "harness/program/onednn/families.h"
#include "harness/program/ops/matmul_view.h"

namespace headroom::onednn {
namespace {

// Describes the same memory as a stack of matrices.
Layout seen(const Op& op, std::size_t operand, const Layout& layout) {
  const MatmulView view = matmul_view(op, operand, layout.get_dims());
  const auto& batch = op.list("batch");
  return {{batch[0], batch[1], view.rows, view.columns},
          layout.get_data_type(),
          dnnl::memory::dims{view.sample_stride, view.head_stride, view.row_stride,
                             view.column_stride}};
}

// With AMX, oneDNN 2.6.3 multiplies wrongly by transposed matrices of 49 to 63 columns, and some of
// its products end in an illegal instruction. Its linear layers and convolutions do neither.
bool uses_amx(const dnnl::matmul::primitive_desc& made) {
  return std::string_view(made.impl_info_str()).find("amx") != std::string_view::npos;
}

}  // namespace

LibraryOp batched_matmul(const Op& op, const Layouts& inputs, const Layouts& outputs) {
  const auto plain = [](const Layout& layout) { return row_major(layout); };
  const Layout a = plain(inputs[0]), b = plain(inputs[1]), y = plain(outputs[0]);
  const Layout seen_a = seen(op, 0, a), seen_b = seen(op, 1, b), seen_y = seen(op, 2, y);
#if DNNL_VERSION_MAJOR < 3
  const dnnl::matmul::desc asked(seen_a, seen_b, seen_y);  // next_impl() reads it again
  dnnl::matmul::primitive_desc made(asked, user_scratchpad(), engine());
#else
  dnnl::matmul::primitive_desc made(engine(), seen_a, seen_b, seen_y, user_scratchpad());
#endif
  while (uses_amx(made) && made.next_impl()) {
  }
  return {shared(made),
          {{.argument = DNNL_ARG_SRC, .layout = a, .seen = seen_a},
           {.argument = DNNL_ARG_WEIGHTS, .layout = b, .seen = seen_b}},
          {{.argument = DNNL_ARG_DST, .layout = y, .seen = seen_y}}};
}

}  // namespace headroom::onednn
