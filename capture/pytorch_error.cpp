#include "capture/pytorch_error.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace headroom {
namespace {

struct SourceLocation {  // as c10::SourceLocation
  const char* function;
  const char* file;
  std::uint32_t line;
};

// The size of PyTorch's error class is not known here; it is 128 bytes in PyTorch 2.15.
constexpr std::size_t kEnoughBytes = 1024;

// Functions and type information needed to throw, all from the libraries that PyTorch itself uses.
struct Parts {
  void (*construct)(void* self, SourceLocation, std::string message) = nullptr;
  void* type = nullptr;
  void* (*make_room)(std::size_t bytes) = nullptr;
  void (*raise)(void* error, void* type, void (*destroy)(void*)) = nullptr;
};

template <typename Symbol>
void find(void* library, const char* name, Symbol& symbol) {
  symbol = reinterpret_cast<Symbol>(dlsym(library, name));
}

Parts find_parts() {
  Parts parts;
  void* library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return parts;
  find(library,
       "_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_"
       "traitsIcESaIcEEE",
       parts.construct);
  find(library, "_ZTIN3c1016OutOfMemoryErrorE", parts.type);
  find(library, "__cxa_allocate_exception", parts.make_room);
  find(library, "__cxa_throw", parts.raise);
  return parts;
}

bool is_complete(const Parts& parts) {
  return parts.construct != nullptr && parts.type != nullptr && parts.make_room != nullptr &&
         parts.raise != nullptr;
}

void* make_error(const Parts& parts, const std::string& message) {
  void* error = parts.make_room(kEnoughBytes);
  parts.construct(error, {"allocate", "Headroom", 0}, message);
  return error;
}

}  // namespace

bool can_throw_pytorch_out_of_memory() { return is_complete(find_parts()); }

void throw_pytorch_out_of_memory(const std::string& message) {
  const Parts parts = find_parts();
  void* error = make_error(parts, message);
  // The first function in the table of an exception's class is its destructor.
  const auto destroy = **static_cast<void (***)(void*)>(error);
  parts.raise(error, parts.type, destroy);
  __builtin_unreachable();
}

}  // namespace headroom
