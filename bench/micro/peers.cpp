#include "bench/micro/peers.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace headroom {
namespace {

std::vector<PeerMalloc> load() {
  std::vector<PeerMalloc> peers = {{"glibc", std::malloc, std::free}};
  for (const auto& [name, library] :
       {std::pair("tcmalloc", "libtcmalloc_minimal.so.4"),
        std::pair("jemalloc", "libjemalloc.so.2"), std::pair("mimalloc", "libmimalloc.so.2.0")}) {
    void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (handle == nullptr) continue;
    peers.push_back({name, reinterpret_cast<void* (*)(std::size_t)>(::dlsym(handle, "malloc")),
                     reinterpret_cast<void (*)(void*)>(::dlsym(handle, "free"))});
  }
  return peers;
}

}  // namespace

const std::vector<PeerMalloc>& peer_mallocs() {
  static const std::vector<PeerMalloc> peers = load();
  return peers;
}

void make_room_for_peers(char** argv) {
  constexpr const char* kTunables = "GLIBC_TUNABLES";
  if (std::getenv(kTunables) != nullptr) return;
  ::setenv(kTunables, "glibc.rtld.optional_static_tls=16384", 1);
  ::execv("/proc/self/exe", argv);
}

}  // namespace headroom
