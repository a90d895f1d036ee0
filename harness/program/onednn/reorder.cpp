#include "harness/program/onednn/families.h"

namespace headroom::onednn {

LibraryOp reorder(const Op&, const Layouts& inputs, const Layouts& outputs) {
  const dnnl::reorder::primitive_desc made(engine(), inputs[0], engine(), outputs[0],
                                           user_scratchpad());
  return {shared(made), {{DNNL_ARG_FROM, inputs[0]}}, {{DNNL_ARG_TO, outputs[0]}}};
}

}  // namespace headroom::onednn
