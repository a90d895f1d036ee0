// The driver's pool of memory behind cudaMallocAsync.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace headroom {

// NVIDIA does not document how a pool places blocks. This model repeats what an H200's driver
// (580.159) did with 600 random requests, each followed by a synchronisation, to the address and to
// the byte that the pool held (tests/virtual_gpu/identity/test_same_as_driver_pool.py):
//   - The pool takes memory in chunks of 32 MiB and maps them into one long range of addresses.
//   - A block takes the smallest gap that is large enough, of equal ones the one that has been free
//     for the longest time, first among gaps whose chunks are all there; else the end of the range.
//   - Missing chunks are moved from where nobody uses them any more; new memory is taken only if
//     these do not suffice. So a block fits if enough chunks are free, however scattered they are.
//   - Freed memory is given back by the next synchronisation, down to the release threshold.
// Six more runs had a release threshold: the model's peak of held memory is within 3.4 % of the
// driver's. Five runs hardly waited for the GPU: the model's peak is 38 % lower to 7 % higher
// there.
class DriverPool {
 public:
  static constexpr std::size_t kChunk = std::size_t{32} << 20;
  static constexpr std::size_t kAlignment = 512;  // of blocks and of their sizes

  // The pool calls these when it takes, gives back or moves the memory of a chunk. A chunk is named
  // by its offset from the pool's first address.
  struct Chunks {
    std::function<bool(std::size_t)> take;  // returns false if there is no memory
    std::function<void(std::size_t)> give_back;
    std::function<void(std::size_t from, std::size_t to)> move;
  };

  // The pool's addresses are `addresses` bytes from `begin` on.
  DriverPool(std::uintptr_t begin, std::size_t addresses, Chunks chunks);

  // Returns the address of a block, or 0 if there is no memory for it.
  std::uintptr_t take(std::size_t bytes);
  // Returns false if no block begins there.
  bool give_back(std::uintptr_t block);
  // Counts freed memory as unused, because the program has waited for the GPU, and gives back what
  // exceeds the release threshold.
  void synchronise();
  // Gives back what nobody uses until at most `bytes` are held.
  void trim_to(std::size_t bytes);
  // Gives back all memory, including that of blocks, which may not be used any more.
  void give_back_all();
  void set_release_threshold(std::size_t bytes) { threshold_ = bytes; }
  std::size_t release_threshold() const { return threshold_; }

  std::size_t held_bytes() const { return chunks_.size() * kChunk; }
  // The longest run of addresses that have memory and no block.
  std::size_t largest_hole() const;
  std::size_t used_bytes() const { return used_; }
  std::size_t most_held() const { return most_held_; }
  std::size_t most_used() const { return most_used_; }
  void forget_most_held() { most_held_ = held_bytes(); }
  void forget_most_used() { most_used_ = used_; }

 private:
  struct Block {
    std::size_t bytes, requested;
  };
  struct Gap {
    std::size_t bytes;
    std::uint64_t since;
  };
  // `begin` is an offset from begin_, `chunk` the number of a chunk.
  std::size_t place_for(std::size_t bytes);
  bool bring_chunks(std::size_t begin, std::size_t bytes);
  void leave_chunks(std::size_t begin, std::size_t bytes);
  bool has_all_chunks(std::size_t begin, std::size_t bytes) const;
  void add_gap(std::size_t begin, std::size_t bytes);
  void remove_gap(std::map<std::size_t, Gap>::iterator gap);
  void drop(std::size_t chunk);

  std::uintptr_t begin_;
  std::size_t addresses_;
  Chunks memory_;
  std::map<std::size_t, Block> blocks_;                                         // by offset
  std::map<std::size_t, Gap> gaps_;                                             // by offset
  std::set<std::tuple<std::size_t, std::uint64_t, std::size_t>> gaps_by_size_;  // then age, offset
  std::map<std::size_t, int> chunks_;   // number of blocks in each that is there
  std::set<std::size_t> idle_, freed_;  // chunks without blocks: before and since synchronisation
  std::size_t end_ = 0, threshold_ = 0, used_ = 0, most_used_ = 0, most_held_ = 0;
  std::uint64_t time_ = 0;
};

}  // namespace headroom
