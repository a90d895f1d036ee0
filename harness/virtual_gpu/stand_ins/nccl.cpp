// Stands in for NCCL. Ranks, of one process or of several, exchange nothing here: every rank is
// assumed to send what this one sends. So the results of small exchanges are known. PyTorch's ranks
// tell each other small numbers by other means (hook/headroom_ranks/numbers.py). The size of NCCL's
// own buffers is not known.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;

namespace {

struct Communicator {
  int ranks = 1, rank = 0, device = 0;
};
struct UniqueId {
  char bytes[128];
};

std::size_t bytes_of_type(int type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kBytes[type] : 1;
}

constexpr int kFirstOwnOperation = 5;  // ncclNumOps; those before are NCCL's own

int ranks_of_next_split = 0;

constexpr int kInvalidUsage = 5;  // ncclInvalidUsage
thread_local char last_message[96] = "";

// Makes an id that no other communicator of this run has.
UniqueId new_id() {
  static std::atomic<int> made{0};
  UniqueId id{};
  std::snprintf(id.bytes, sizeof id.bytes, "%d-%d", getpid(), ++made);
  return id;
}

// Returns the rank of a communicator that uses this device: `rank`, if no other one was before it.
int rank_of_device(const UniqueId& id, int rank, int device) {
  const char* place = std::getenv("HEADROOM_GPU_RECORDS");
  if (place == nullptr) return rank;
  const std::string path = std::string(place) + "/nccl-" +
                           std::string(id.bytes, strnlen(id.bytes, sizeof id.bytes)) + "-" +
                           std::to_string(card_number(device));
  const std::string text = std::to_string(rank);
  if (symlink(text.c_str(), path.c_str()) == 0 || errno != EEXIST) return rank;
  char first[16] = "";
  return readlink(path.c_str(), first, sizeof first - 1) > 0 ? std::atoi(first) : rank;
}

int make_communicator(Communicator** out, int ranks, int rank, const UniqueId* id = nullptr) {
  const int device = current_device();
  const int first = id != nullptr ? rank_of_device(*id, rank, device) : rank;
  if (first != rank) {
    std::snprintf(last_message, sizeof last_message,
                  "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d", rank,
                  first, card_number(device));
    std::fprintf(stderr, "NCCL WARN %s\n", last_message);
    return kInvalidUsage;
  }
  note_size_not_known("ncclCommInitRank");
  *out = new Communicator{ranks, rank, device};
  return kSuccess;
}

// A buffer that a rank does not need may be null, such as the result of ncclReduce on a rank that
// is not the root.
int exchange(const void* from, void* to, std::size_t bytes) {
  if (from != to && from != nullptr && to != nullptr) copy(to, from, bytes);
  return kSuccess;
}

}  // namespace

HEADROOM_EXPORT const char* ncclGetErrorString(int error) {
  return error == kInvalidUsage ? "invalid usage (run with NCCL_DEBUG=WARN for details)"
                                : "no error";
}
HEADROOM_EXPORT const char* ncclGetLastError(void*) { return last_message; }
HEADROOM_EXPORT int ncclGetVersion(int* version) {
  *version = 22'703;
  return kSuccess;
}
HEADROOM_EXPORT int ncclGetUniqueId(UniqueId* id) {
  *id = new_id();
  return kSuccess;
}
HEADROOM_EXPORT int ncclCommInitRank(Communicator** out, int ranks, UniqueId id, int rank) {
  return make_communicator(out, ranks, rank, &id);
}
HEADROOM_EXPORT int ncclCommInitRankConfig(Communicator** out, int ranks, UniqueId id, int rank,
                                           void*) {
  return make_communicator(out, ranks, rank, &id);
}
HEADROOM_EXPORT int ncclCommInitRankScalable(Communicator** out, int ranks, int rank, int,
                                             UniqueId* id, void*) {
  return make_communicator(out, ranks, rank, id);
}
HEADROOM_EXPORT int ncclCommInitAll(Communicator** out, int ranks, const int*) {
  for (int rank = 0; rank < ranks; ++rank) make_communicator(&out[rank], ranks, rank);
  return kSuccess;
}
// NCCL would count the ranks with the same colour. The hook in the program knows their number.
HEADROOM_EXPORT void headroom_gpu_next_split_has(int ranks) { ranks_of_next_split = ranks; }
// `key` orders the ranks of a colour. PyTorch gives each its rank in the new communicator.
HEADROOM_EXPORT int ncclCommSplit(Communicator* parent, int colour, int key, Communicator** out,
                                  void*) {
  *out = nullptr;
  if (colour < 0) return kSuccess;  // This rank takes part in no new communicator.
  return make_communicator(out, ranks_of_next_split > 0 ? ranks_of_next_split : parent->ranks, key);
}
HEADROOM_EXPORT int ncclCommDestroy(Communicator* communicator) {
  delete communicator;
  return kSuccess;
}
HEADROOM_EXPORT int ncclCommAbort(Communicator* communicator) {
  return ncclCommDestroy(communicator);
}
HEADROOM_EXPORT int ncclCommCount(const Communicator* communicator, int* count) {
  *count = communicator->ranks;
  return kSuccess;
}
HEADROOM_EXPORT int ncclCommUserRank(const Communicator* communicator, int* rank) {
  *rank = communicator->rank;
  return kSuccess;
}
HEADROOM_EXPORT int ncclCommCuDevice(const Communicator* communicator, int* device) {
  *device = communicator->device;
  return kSuccess;
}
HEADROOM_EXPORT int ncclCommGetAsyncError(Communicator*, int* error) {
  *error = kSuccess;
  return kSuccess;
}
// An operation that multiplies before it adds. As operations are not carried out, any of them
// serves.
HEADROOM_EXPORT int ncclRedOpCreatePreMulSum(int* operation, void*, int, int, void*) {
  *operation = kFirstOwnOperation;
  return kSuccess;
}
HEADROOM_EXPORT int ncclMemAlloc(void** address, std::size_t bytes) {
  *address = allocate(bytes, current_device());
  return *address != nullptr ? kSuccess : kInvalidValue;
}
HEADROOM_EXPORT int ncclMemFree(void* address) {
  release(address);
  return kSuccess;
}
// A window is the address of its memory. As nothing reaches other ranks, theirs lies there as well.
HEADROOM_EXPORT int ncclCommWindowRegister(void*, void* memory, std::size_t, void** window, int) {
  *window = memory;
  return kSuccess;
}
HEADROOM_EXPORT int ncclWinGetUserPtr(void*, void* window, void** memory) {
  *memory = window;
  return kSuccess;
}
HEADROOM_EXPORT int ncclGetPeerDevicePointer(void* window, std::size_t offset, int, void** memory) {
  *memory = static_cast<char*>(window) + offset;
  return kSuccess;
}
HEADROOM_EXPORT int ncclGetLsaMultimemDevicePointer(void*, std::size_t, void** memory) {
  *memory = nullptr;  // no multicast
  return kSuccess;
}
HEADROOM_EXPORT int ncclAllGather(const void* from, void* to, std::size_t count, int type,
                                  const Communicator* communicator, void*) {
  const std::size_t bytes = count * bytes_of_type(type);
  for (int rank = 0; rank < communicator->ranks && bytes <= kKeptBytes; ++rank)
    exchange(from, static_cast<char*>(to) + static_cast<std::size_t>(rank) * bytes, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int,
                                  void*, void*) {
  return exchange(from, to, count * bytes_of_type(type));
}
HEADROOM_EXPORT int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int,
                                  void*, void*) {
  return exchange(from, to, count * bytes_of_type(type));
}
HEADROOM_EXPORT int ncclReduce(const void* from, void* to, std::size_t count, int type, int, int,
                               void*, void*) {
  return exchange(from, to, count * bytes_of_type(type));
}
HEADROOM_EXPORT int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int,
                                      const Communicator* communicator, void*) {
  const std::size_t bytes = count * bytes_of_type(type);
  return exchange(
      static_cast<const char*>(from) + static_cast<std::size_t>(communicator->rank) * bytes, to,
      bytes);
}
