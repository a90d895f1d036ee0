// The result of a check, for people (Markdown) and for programs (JSON).
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/nights/check.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

constexpr std::size_t kShown = 50;  // an issue holds 65,536 characters

// Escapes a name from a file to plain text on one line, so that it cannot become markup, a link or
// an image.
std::string escaped(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::string safe;
  for (const char c : printable(text)) {
    const bool begins_target = c == '(' && safe.ends_with(']');  // [text](target)
    if (begins_target || std::string_view("\\|`<").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

// Quotes one word of a shell command inside a code span.
std::string quoted(std::string text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word;
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '`', ' ');
  for (const char c : printable(text)) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + word + "'";
}

std::string commits_of(const NightFinding& finding) {
  const auto brief = [](const std::string& commit) {
    return commit.empty() ? std::string("unknown") : escaped(commit.substr(0, 12));
  };
  if (finding.previous.empty()) return fmt::format("at {} or before", brief(finding.since_commit));
  return fmt::format("{}..{}", brief(finding.previous_commit), brief(finding.since_commit));
}

std::string table_of(const std::vector<NightFinding>& findings) {
  std::string text = "| what | change | commits | since |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < std::min(findings.size(), kShown); ++i)
    text += fmt::format("| {} | {} | {} | {} |\n", escaped(findings[i].what),
                        escaped(findings[i].sentence), commits_of(findings[i]),
                        escaped(findings[i].since));
  if (findings.size() > kShown) text += fmt::format("\n{} of {} shown.\n", kShown, findings.size());
  return text;
}

std::string list_of(const std::string& title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text = fmt::format("\n{} ({}):\n\n", title, items.size());
  for (std::size_t i = 0; i < std::min(items.size(), kShown); ++i)
    text += fmt::format("- {}\n", escaped(items[i]));
  if (items.size() > kShown) text += fmt::format("- … {} more\n", items.size() - kShown);
  return text;
}

std::string advice_for(const NightCheck& check, const std::string& store) {
  if (check.failures.empty()) return "";
  std::string text = "\n### What to do\n\n";
  const auto level =
      std::find_if(check.failures.begin(), check.failures.end(), [](const NightFinding& finding) {
        return finding.kind == FindingKind::level && !finding.previous_commit.empty();
      });
  if (level != check.failures.end())
    text += fmt::format(
        "- Is it the program or the machine? Build both commits and let them alternate: "
        "`scripts/gate {} {}`\n",
        quoted(level->previous_commit.substr(0, 12)), quoted(level->since_commit.substr(0, 12)));
  const NightFinding& first = check.failures.front();
  const std::string name =
      first.kind == FindingKind::verdict ? first.what.substr(0, first.what.find(' ')) : first.what;
  text += fmt::format(
      "- If a change is intended: `headroom history accept {} --reason 'why' --store {}`\n",
      quoted(name), quoted(store));
  return text;
}

Json to_object(const NightFinding& finding) {
  return {{"kind", to_string(finding.kind)},
          {"what", finding.what},
          {"metric", text_or_null(finding.metric)},
          {"sentence", finding.sentence + "."},
          {"since", finding.since},
          {"previous", text_or_null(finding.previous)},
          {"since_commit", text_or_null(finding.since_commit)},
          {"previous_commit", text_or_null(finding.previous_commit)}};
}

}  // namespace

std::string issue_of(const NightCheck& check, const std::string& store) {
  std::string text = fmt::format("## {}\n\nRun {}, commit {}, {} night{} looked at.\n\n",
                                 escaped(check.headline()), escaped(check.night.run_id),
                                 escaped(check.night.commit.value_or("unknown")),
                                 check.night_ids.size(), check.night_ids.size() == 1 ? "" : "s");
  if (!check.failures.empty()) text += table_of(check.failures);
  if (!check.night.distrust.empty())
    text += fmt::format(
        "\nTimes were not judged: {}{}\n", escaped(check.night.distrust),
        check.shifts_held_back > 0
            ? fmt::format(" {} shifts of levels are not reported.", check.shifts_held_back)
            : "");
  text += advice_for(check, store);
  if (!check.notes.empty()) text += "\n### Noted, without failing\n\n" + table_of(check.notes);
  text += list_of("Missing configurations", check.missing);
  text += list_of("New configurations", check.added);
  if (!check.marks.empty()) text += "\n### Changes of environment\n\n";
  for (const EnvironmentMark& mark : check.marks) {
    text += fmt::format("- {}: earlier times no longer count", escaped(mark.night_id));
    for (const auto& [what, first, second] : mark.differences)
      text +=
          fmt::format("; {} was '{}' and is '{}'", escaped(what), escaped(first), escaped(second));
    text += "\n";
  }
  return text;
}

std::string to_json(const NightCheck& check, const std::string& store) {
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "check"},
               {"headline", check.headline()},
               {"exit_code", static_cast<int>(check.exit_code())},
               {"night_id", check.night.night_id},
               {"run_id", check.night.run_id},
               {"night_ids", check.night_ids},
               {"store", store},
               {"cells", check.cells},
               {"distrust", check.night.distrust.empty() ? Json() : Json(check.night.distrust)},
               {"shifts_held_back", check.shifts_held_back},
               {"failures", Json::array()},
               {"notes", Json::array()},
               {"missing", check.missing},
               {"new", check.added},
               {"marks", Json::array()}};
  for (const NightFinding& finding : check.failures) json["failures"].push_back(to_object(finding));
  for (const NightFinding& finding : check.notes) json["notes"].push_back(to_object(finding));
  for (const EnvironmentMark& mark : check.marks) {
    Json differences = Json::array();
    for (const auto& [what, first, second] : mark.differences)
      differences.push_back({{"what", what}, {"before", first}, {"after", second}});
    json["marks"].push_back({{"night_id", mark.night_id}, {"differences", differences}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headroom
