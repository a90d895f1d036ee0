// Validates result files against the schema that writers and readers share (reports/schema.json,
// built in).
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Readers accept the same major version and ignore unknown fields.
inline constexpr std::string_view kSchemaVersion = "1.0";

enum class RecordKind { run, sample, verdicts, night, acceptance, check };

// Throws InputError that begins with `where` ("runs/x/samples.jsonl:12") if the text is not JSON,
// is not a record of this kind, has another major version, or violates the schema.
void check_record(const std::string& json, RecordKind kind, std::string_view where);

}  // namespace headroom
