// The general-purpose mallocs that allocators are measured beside.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headroom {

struct PeerMalloc {
  std::string name;
  void* (*malloc)(std::size_t);
  void (*free)(void*);
};

// glibc's, and those of tcmalloc, jemalloc and mimalloc whose libraries are installed, each loaded
// beside the process's own.
const std::vector<PeerMalloc>& peer_mallocs();

// jemalloc wants more thread-local storage than the loader sets aside for libraries that come late:
// starts the program anew with enough of it.
void make_room_for_peers(char** argv);

}  // namespace headroom
