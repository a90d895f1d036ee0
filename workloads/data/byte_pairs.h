// Byte-pair encoding (Sennrich, Haddow and Birch 2016, "Neural Machine Translation of Rare Words
// with Subword Units"): the commonest neighbours are merged into tokens again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// The first tokens of every vocabulary; text is made of the others.
inline constexpr std::int32_t kPadToken = 0;
inline constexpr std::int32_t kClassifyToken = 1;
inline constexpr std::int32_t kSeparatorToken = 2;
inline constexpr std::int32_t kMaskToken = 3;
inline constexpr std::int32_t kFirstTextToken = 4;

struct EncodedText {
  std::vector<std::string> vocabulary;  // by token; "[PAD]" and so on first
  std::vector<std::int32_t> tokens;     // of all documents, each ended by a separator
};

// Letters lowered (ASCII), each run of blanks one blank, one before the first word: what the tokens
// of a document spell when they are put together again.
std::string normalise(std::string_view document);

// Learns at most `size` tokens from the documents and spells the documents in them. Depends on the
// documents alone: ties go to the pair of lower tokens. Throws InputError when `size` does not even
// hold the bytes that occur.
EncodedText encode(const std::vector<std::string>& documents, std::size_t size);

}  // namespace headroom
