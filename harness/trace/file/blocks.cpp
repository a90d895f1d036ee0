#include "harness/trace/file/blocks.h"

#include <fmt/format.h>
#include <zstd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <istream>
#include <ostream>

#include "harness/base/error.h"

namespace headroom::trace_file {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian");

constexpr int kCompressionLevel = 3;
constexpr std::size_t kPrefixBytes = 1 + sizeof(std::uint32_t);  // kind and size of the frame

std::size_t checked(std::size_t result) {
  if (ZSTD_isError(result) != 0)
    throw Error(fmt::format("zstd failed: {}", ZSTD_getErrorName(result)));
  return result;
}

BlockKind kind_of(char letter) {
  for (const BlockKind kind :
       {BlockKind::header, BlockKind::names, BlockKind::chunk, BlockKind::end})
    if (letter == static_cast<char>(kind)) return kind;
  throw InputError(fmt::format("is damaged: {:#04x} is not a kind of block",
                               static_cast<unsigned>(static_cast<unsigned char>(letter))));
}

}  // namespace

struct BlockWriter::Compressor {
  Compressor() : context(ZSTD_createCCtx(), &ZSTD_freeCCtx) {
    checked(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kCompressionLevel));
    checked(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1));
  }
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context;
};

BlockWriter::BlockWriter(std::ostream& out)
    : out_(out), compressor_(std::make_unique<Compressor>()) {
  put(kMagic.data(), kMagic.size());
}
BlockWriter::~BlockWriter() = default;

void BlockWriter::put(const char* data, std::size_t size) {
  if (!out_.write(data, static_cast<std::streamsize>(size)))
    throw InputError(fmt::format("cannot be written: {}; make room", std::strerror(errno)));
}

void BlockWriter::flush() {
  if (!out_.flush())
    throw InputError(fmt::format("cannot be written: {}; make room", std::strerror(errno)));
}

void BlockWriter::write(BlockKind kind, std::string_view content) {
  if (content.size() > kMaximumContent)
    throw InputError(
        fmt::format("a block of {} bytes is more than a trace may hold in one", content.size()));
  frame_.resize(kPrefixBytes + ZSTD_compressBound(content.size()));
  const std::size_t size =
      checked(ZSTD_compress2(compressor_->context.get(), frame_.data() + kPrefixBytes,
                             frame_.size() - kPrefixBytes, content.data(), content.size()));
  const auto stored = static_cast<std::uint32_t>(size);
  frame_[0] = static_cast<char>(kind);
  std::memcpy(frame_.data() + 1, &stored, sizeof stored);
  put(frame_.data(), kPrefixBytes + size);
}

struct BlockReader::Decompressor {
  Decompressor() : context(ZSTD_createDCtx(), &ZSTD_freeDCtx) {}
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context;
};

BlockReader::BlockReader(std::istream& in)
    : in_(in), decompressor_(std::make_unique<Decompressor>()) {}
BlockReader::~BlockReader() = default;

void BlockReader::read_magic() {
  std::string magic(kMagic.size(), '\0');
  in_.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  if (magic != kMagic) throw InputError("is not a Headroom trace");
  bytes_read_ = magic.size();
}

std::optional<Block> BlockReader::next() {
  if (bytes_read_ == 0) read_magic();
  char prefix[kPrefixBytes];
  in_.read(prefix, sizeof prefix);
  if (in_.gcount() == 0) return std::nullopt;
  if (in_.gcount() != sizeof prefix) throw InputError("is cut off");
  const BlockKind kind = kind_of(prefix[0]);
  std::uint32_t size = 0;
  std::memcpy(&size, prefix + 1, sizeof size);
  if (size > ZSTD_compressBound(kMaximumContent))
    throw InputError(fmt::format("is damaged: a block of {} bytes", size));
  frame_.resize(size);
  in_.read(frame_.data(), size);
  if (static_cast<std::size_t>(in_.gcount()) != size) throw InputError("is cut off");

  // Both of zstd's special values, unknown and error, exceed any valid content size.
  const unsigned long long expected = ZSTD_getFrameContentSize(frame_.data(), size);
  if (expected > kMaximumContent)
    throw InputError("is damaged: a frame has no known or plausible size");
  content_.resize(expected);
  const std::size_t got = ZSTD_decompressDCtx(decompressor_->context.get(), content_.data(),
                                              content_.size(), frame_.data(), size);
  if (ZSTD_isError(got) != 0)
    throw InputError(fmt::format("is damaged: {}", ZSTD_getErrorName(got)));
  if (got != expected) throw InputError("is damaged: a frame ends early");
  bytes_read_ += kPrefixBytes + size;
  return Block{kind, content_};
}

}  // namespace headroom::trace_file
