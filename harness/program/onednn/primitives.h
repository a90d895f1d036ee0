// Descriptors of the library's primitives, made alike with oneDNN 2 and with oneDNN 3. For the
// files of this folder only.
#pragma once

#include "harness/program/onednn/families.h"

namespace headroom::onednn {

// A descriptor of a primitive of this type. `arguments` describe the operation, in the library's
// order. If `or_none`, the descriptor is empty where the library has no implementation; else that
// throws.
template <typename Primitive, typename... Arguments>
auto descriptor_of(bool or_none, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR < 3
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...),
                                            user_scratchpad(), engine(), or_none);
#else
  return typename Primitive::primitive_desc(engine(), arguments..., user_scratchpad(), or_none);
#endif
}

// The same for a backward pass. `hint` describes the forward pass that it belongs to.
template <typename Primitive, typename Hint, typename... Arguments>
auto backward_descriptor_of(const Hint& hint, bool or_none, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR < 3
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...),
                                            user_scratchpad(), engine(), hint, or_none);
#else
  return
      typename Primitive::primitive_desc(engine(), arguments..., hint, user_scratchpad(), or_none);
#endif
}

// oneDNN 3 wants some arguments that oneDNN 2 does not have: a second layout, a dilation.
#if DNNL_VERSION_MAJOR < 3
#define HEADROOM_ONEDNN_3(argument)
#else
#define HEADROOM_ONEDNN_3(argument) (argument),
#endif

}  // namespace headroom::onednn
