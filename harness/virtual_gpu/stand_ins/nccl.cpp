// Stands in for NCCL. Ranks, of one process or of several, exchange nothing: every rank is assumed
// to send what this one sends. So the results of small exchanges are known. The size of NCCL's own
// buffers is not known.
#include <cstring>

#include "harness/virtual_gpu/stand_ins/account.h"
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

int make_communicator(Communicator** out, int ranks, int rank) {
  note_size_not_known("ncclCommInitRank");
  *out = new Communicator{ranks, rank, current_device()};
  return kSuccess;
}

// A buffer that a rank does not need may be null, such as the result of ncclReduce on a rank that
// is not the root.
int exchange(const void* from, void* to, std::size_t bytes) {
  if (from != to && from != nullptr && to != nullptr) copy(to, from, bytes);
  return kSuccess;
}

}  // namespace

HEADROOM_EXPORT const char* ncclGetErrorString(int) { return "no error"; }
HEADROOM_EXPORT const char* ncclGetLastError(void*) { return ""; }
HEADROOM_EXPORT int ncclGetVersion(int* version) {
  *version = 22'703;
  return kSuccess;
}
HEADROOM_EXPORT int ncclGetUniqueId(UniqueId* id) {
  std::memset(id->bytes, 1, sizeof id->bytes);
  return kSuccess;
}
HEADROOM_EXPORT int ncclCommInitRank(Communicator** out, int ranks, UniqueId, int rank) {
  return make_communicator(out, ranks, rank);
}
HEADROOM_EXPORT int ncclCommInitRankConfig(Communicator** out, int ranks, UniqueId, int rank,
                                           void*) {
  return make_communicator(out, ranks, rank);
}
HEADROOM_EXPORT int ncclCommInitRankScalable(Communicator** out, int ranks, int rank, int,
                                             UniqueId*, void*) {
  return make_communicator(out, ranks, rank);
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
