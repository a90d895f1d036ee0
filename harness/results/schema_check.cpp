#include "harness/results/schema_check.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/schema.h>
#include <rapidjson/stringbuffer.h>

#include <map>

#include "harness/base/error.h"
#include "harness/results/schema_text.h"

namespace headroom {
namespace {

std::string_view name_of(RecordKind kind) {
  switch (kind) {
    case RecordKind::run:
      return "run";
    case RecordKind::sample:
      return "sample";
    case RecordKind::verdicts:
      return "verdicts";
    case RecordKind::night:
      return "night";
    case RecordKind::acceptance:
      return "acceptance";
    case RecordKind::check:
      return "check";
  }
  return "";
}

// Makes the definition of one kind the root, so that an error names its field and not just "oneOf".
rapidjson::SchemaDocument schema_of(RecordKind kind) {
  rapidjson::Document all;
  all.Parse(kSchemaText);
  if (all.HasParseError()) throw Error("the built-in reports/schema.json is not JSON");
  rapidjson::Value root(all["definitions"][std::string(name_of(kind)).c_str()], all.GetAllocator());
  root.AddMember("definitions", all["definitions"], all.GetAllocator());
  return rapidjson::SchemaDocument(root);
}

const rapidjson::SchemaDocument& cached_schema_of(RecordKind kind) {
  static std::map<RecordKind, rapidjson::SchemaDocument> schemas;
  const auto found = schemas.find(kind);
  return found != schemas.end() ? found->second
                                : schemas.emplace(kind, schema_of(kind)).first->second;
}

// The validator recurses once per level, and Headroom's own records have fewer than ten levels.
void check_depth(std::string_view json, std::string_view where) {
  constexpr int kDeepest = 100;
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char letter = json[i];
    if (in_text && letter == '\\')
      ++i;
    else if (letter == '"')
      in_text = !in_text;
    else if (!in_text && (letter == '[' || letter == '{') && ++depth > kDeepest)
      throw InputError(fmt::format("{}: nested deeper than {} levels", where, kDeepest));
    else if (!in_text && (letter == ']' || letter == '}'))
      --depth;
  }
}

std::string text_at(const rapidjson::Document& record, const char* key) {
  const auto found = record.FindMember(key);
  if (found == record.MemberEnd() || !found->value.IsString()) return "";
  return found->value.GetString();
}

}  // namespace

void check_record(const std::string& json, RecordKind kind, std::string_view where) {
  check_depth(json, where);
  rapidjson::Document record;
  record.Parse(json.c_str(), json.size());
  if (record.HasParseError())
    throw InputError(fmt::format("{}: not JSON at byte {}: {}", where, record.GetErrorOffset(),
                                 rapidjson::GetParseError_En(record.GetParseError())));
  if (!record.IsObject() || text_at(record, "kind") != name_of(kind))
    throw InputError(fmt::format("{}: not a Headroom {} record (its \"kind\" is \"{}\")", where,
                                 name_of(kind), record.IsObject() ? text_at(record, "kind") : ""));
  const std::string version = text_at(record, "schema_version");
  const auto major = [](std::string_view text) { return text.substr(0, text.find('.')); };
  if (major(version) != major(kSchemaVersion))
    throw InputError(
        fmt::format("{}: written in schema version \"{}\", this program reads {}.x; "
                    "use the Headroom that wrote it",
                    where, version, major(kSchemaVersion)));
  rapidjson::SchemaValidator validator(cached_schema_of(kind));
  if (record.Accept(validator)) return;
  rapidjson::StringBuffer field;
  validator.GetInvalidDocumentPointer().StringifyUriFragment(field);
  throw InputError(fmt::format("{}: field {} breaks the rule \"{}\" of reports/schema.json", where,
                               field.GetString(), validator.GetInvalidSchemaKeyword()));
}

}  // namespace headroom
