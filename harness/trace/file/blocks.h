// The outer format of a trace file: a magic number and a sequence of blocks, each a separate zstd
// frame with a checksum. README.md beside this file describes the whole format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::trace_file {

inline constexpr std::string_view kMagic = "\x89HRTRACE";

// Upper bound of the content of one block, which limits the memory a damaged file can make a reader
// allocate at once.
inline constexpr std::size_t kMaximumContent = std::size_t{16} << 20;

enum class BlockKind : char { header = 'H', names = 'N', chunk = 'C', end = 'E' };

class BlockWriter {
 public:
  // Writes the magic number. Throws InputError when the stream fails.
  explicit BlockWriter(std::ostream& out);
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  // Throws InputError when the content exceeds kMaximumContent or the stream fails.
  void write(BlockKind kind, std::string_view content);
  void flush();

 private:
  void put(const char* data, std::size_t size);

  struct Compressor;
  std::ostream& out_;
  std::unique_ptr<Compressor> compressor_;
  std::string frame_;
};

struct Block {
  BlockKind kind;
  std::string_view content;  // valid until the next block is read
};

class BlockReader {
 public:
  explicit BlockReader(std::istream& in);
  ~BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // The next block; nullopt at the end of the stream. Throws InputError when the file is truncated,
  // damaged or not a trace.
  std::optional<Block> next();
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct Decompressor;
  void read_magic();

  std::istream& in_;
  std::unique_ptr<Decompressor> decompressor_;
  std::string frame_;
  std::string content_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace headroom::trace_file
