// Holds result files against the schema both sides share (reports/schema.json, built in).
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Readers accept the same major version and ignore unknown fields.
inline constexpr std::string_view kSchemaVersion = "1.0";

enum class RecordKind { run, sample, verdicts, night, acceptance, check };

// Throws InputError that begins with `where` ("runs/x/samples.jsonl:12") when the text is no
// JSON, not a record of this kind, of another major version, or breaks the schema.
void check_record(const std::string& json, RecordKind kind, std::string_view where);

}  // namespace headroom
