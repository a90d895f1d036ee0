// The general-purpose mallocs with which the allocators are compared.
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

// glibc's malloc, and tcmalloc, jemalloc and mimalloc where their libraries are installed. Each is
// loaded in addition to the process's own malloc.
const std::vector<PeerMalloc>& peer_mallocs();

// Restarts the program with more thread-local storage: jemalloc needs more than the loader reserves
// for libraries loaded at run time.
void make_room_for_peers(char** argv);

}  // namespace headroom
