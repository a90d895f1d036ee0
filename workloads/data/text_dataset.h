// Text from the user's files, or by default the licence texts of every Debian system, as tokens of
// a byte-pair vocabulary learnt from it. The vocabulary is learnt once and cached.
//
// Format of a token set, a directory of two files:
//   vocabulary.txt  one token per line; the line number (from 0) is the token's number. The first
//                   four are [PAD], [CLS], [SEP] and [MASK]. Bytes that are not printable ASCII,
//                   blanks and backslashes are written \xHH.
//   tokens.bin      the text: little-endian 32-bit numbers, each document ended by [SEP].
#pragma once

#include <filesystem>
#include <vector>

#include "workloads/data/byte_pairs.h"

namespace headroom {

// The text files that `data` names: a file, the files of a directory (links to the same file count
// once), or, when empty, /usr/share/common-licenses. Sorted. Throws InputError that names data=
// when there are none.
std::vector<std::filesystem::path> text_files(const std::filesystem::path& data);

// The directory of the token set of these texts with at most `size` tokens; learns and writes it on
// first use (safe beside other processes).
std::filesystem::path token_set_directory(const std::vector<std::filesystem::path>& texts,
                                          std::size_t size);

void write_token_set(const EncodedText& text, const std::filesystem::path& directory);
// Throws InputError naming the file and what is wrong with it.
EncodedText read_token_set(const std::filesystem::path& directory);

}  // namespace headroom
