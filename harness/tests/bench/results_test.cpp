// SPDX-License-Identifier: MIT
#include "harness/results/results.h"

#include <fstream>
#include <iterator>

#include "harness/environment/build.h"
#include "harness/io/file.h"
#include "harness/measure/limits/row.h"
#include "harness/tests/bench/json_printer.h"
#include "harness/tests/catch.h"
#include "harness/tests/helpers.h"

namespace fa {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

FileIdentity identity() {
  return {.generator = {{"version", "1"},
                        {"git_sha", "abc"},
                        {"git_dirty", false},
                        {"nvcc", "13.0"},
                        {"flags", "-O3"},
                        {"argv", Json::array({"bench"})}},
          .device = {{"kind", "gpu"},
                     {"name", "G"},
                     {"sm", 90},
                     {"memory", 1},
                     {"driver", "580"},
                     {"power_limit", 700.0}},
          .policy = {{"rounds", 5}, {"l2", "flush"}}};
}

Row row(const std::string& id, std::int64_t seq, Status status = Status::ok,
        RowKind kind = RowKind::rung, const std::string& variant = "64x64w4") {
  Row row;
  row.key = {.kind = kind, .id = id, .variant = variant, .problem = {.seq_q = seq, .seq_kv = seq}};
  row.status = status;
  return row;
}

template <typename... Rows>
void put(ResultsFile& file, const Rows&... rows) {
  const std::vector<Row> list{rows...};
  file.put(list);
}

std::string refusal(const fs::path& path, const FileIdentity& mine) {
  try {
    ResultsFile file(path, mine, false);
  } catch (const ForeignResults& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("a problem survives the way through JSON") {
  const Problem problem{.batch = 3,
                        .heads = 5,
                        .seq_q = 7,
                        .seq_kv = std::int64_t{1} << 40,
                        .head_dim = 64,
                        .causal = true,
                        .dtype = Dtype::f32};
  CHECK(problem_from_json(Json::parse(to_json(problem).dump())) == problem);
  Json bad = to_json(problem);
  bad["dtype"] = "float8";
  CHECK_THROWS(problem_from_json(bad));
  bad = to_json(problem);
  bad.erase("heads");
  CHECK_THROWS(problem_from_json(bad));
  for (const auto& [name, value] : {std::pair<const char*, Json>{"batch", 0},
                                    {"seq_q", -1},
                                    {"seq_kv", 1.5},
                                    {"causal", 1},
                                    {"cache", "int8"}}) {
    bad = to_json(problem);
    bad[name] = value;
    CHECK_THROWS(problem_from_json(bad));
  }
}

TEST_CASE("names of kinds and states lead back to them, and nothing else does") {
  for (const auto& [value, name] : kNamesOf<Status>) CHECK(named<Status>(name) == value);
  for (const auto& [value, name] : kNamesOf<RowKind>) CHECK(named<RowKind>(name) == value);
  for (const auto& [value, name] : kNamesOf<Limit>) CHECK(named<Limit>(name) == value);
  CHECK_FALSE(named<Status>("OK"));
  CHECK_FALSE(named<Status>(""));
  CHECK(std::size(kNamesOf<Status>) == static_cast<std::size_t>(Status::error) + 1);
}

/// The result files that come with the repository.
std::vector<fs::path> committed() {
  std::vector<fs::path> files;
  for (const auto& each : fs::recursive_directory_iterator(source_path("plots/results"))) {
    if (each.path().extension() != ".json") continue;
    const Json document = Json::parse(slurp(each.path()));
    if (document.contains("policy") && !document.contains("kind")) files.push_back(each.path());
  }
  return files;
}

TEST_CASE("every committed row is read and written without a change") {
  const std::vector<fs::path> files = committed();
  REQUIRE(files.size() >= 4);
  for (const fs::path& path : files) {
    CAPTURE(path);
    const Json document = Json::parse(slurp(path));
    for (const Json& row : document["rows"])
      REQUIRE(to_json(row_from_json(row)).dump() == row.dump());
    const auto read = read_results(path);
    REQUIRE(read);
    CHECK(results_document(read->identity, read->rows).dump() == document.dump());
  }
}

TEST_CASE("so is every committed row of limits") {
  for (const char* file : {"plots/results/h100/limits.json", "plots/results/h200/limits.json"}) {
    const Json document = Json::parse(slurp(source_path(file)));
    for (const Json& row : document["rows"])
      REQUIRE(to_json(from_json<limits::LimitRow>(row)) == row);
  }
}

TEST_CASE("a key of a row that this program does not know is kept at any depth") {
  Row timed = row("01", 512);
  timed.time_ms = RowTimes{.median = 1, .p10 = 1, .p90 = 1, .min = 1, .n = 3};
  timed.launches = {{.entry = "first", .time_ms = timed.time_ms}, {.entry = "second"}};
  Json json = to_json(timed);
  json["of_tomorrow"] = {1, 2};
  json["problem"]["softcap"] = 30;
  json["time_ms"]["p99"] = 2;
  json["launches"][1]["resources"]["barriers"] = 4;
  CHECK(row_from_json(json).key == timed.key);
  CHECK(to_json(row_from_json(json)).dump() == json.dump());
}

/// A future key of a row: each new column takes one line.
struct WiderProblem {
  FA_FIELDS(WiderProblem);
  FA_FIELD(double, softcap, 0, "Scores stay below.", .if_set = true, .rules = kPositive);
};
struct WiderKey {
  FA_FIELDS(WiderKey);
  FA_FIELD(RowKey, today, {}, "", .key = "");
  FA_FIELD(WiderProblem, problem, {}, "", .key = "problem");
  FA_FIELD(std::optional<double>, joules, {}, "Of a launch.", .rules = kPositive);
};

TEST_CASE("a line in a struct is a column of its file, of the reader and of the schema") {
  WiderKey wide{.today = row("01", 512).key};
  Json json = to_json(wide.today);
  json["joules"] = nullptr;
  CHECK(to_json(wide) == json);
  CHECK(from_json<WiderKey>(json) == wide);

  wide.joules = 0.5, wide.problem.softcap = 30;
  json["joules"] = 0.5, json["problem"]["softcap"] = 30.0;
  CHECK(to_json(wide) == json);
  CHECK(from_json<WiderKey>(json) == wide);
  json["joules"] = "much";
  CHECK_THROWS(from_json<WiderKey>(json));

  Json schema = schema_of<RowKey>();
  schema["required"].push_back("joules");
  schema["properties"]["joules"] = {{"type", {"number", "null"}},
                                    {"minimum", 0},
                                    {"description", "Of a launch."},
                                    {"exclusiveMinimum", 0}};
  schema["properties"]["problem"]["properties"]["softcap"] = {{"type", "number"},
                                                              {"minimum", 0},
                                                              {"description", "Scores stay below."},
                                                              {"not", {{"const", 0.0}}},
                                                              {"exclusiveMinimum", 0}};
  CHECK(schema_of<WiderKey>() == schema);
}

TEST_CASE("a damaged row is an error, not a row") {
  const Json good = to_json(row("01", 512));
  CHECK_NOTHROW(row_from_json(good));
  for (const auto& [key, value] : {std::pair<const char*, Json>{"status", "fine"},
                                   {"kind", "other"},
                                   {"tflops", "fast"},
                                   {"check", Json::object()},
                                   {"time_ms", {{"median", "1"}}},
                                   {"problem", Json::object()},
                                   {"resources", {{"limited_by", {"luck"}}}}}) {
    CAPTURE(key);
    Json bad = good;
    bad[key] = value;
    CHECK_THROWS(row_from_json(bad));
  }
  for (const Json& extent : {Json(0), Json(-1), Json(1.5), Json(1e300), Json("1")}) {
    CAPTURE(extent.dump());
    Json bad = good;
    bad["problem"]["batch"] = extent;
    CHECK_THROWS_AS(row_from_json(bad), std::invalid_argument);
  }
}

TEST_CASE("rows are written at once, replaced by key, and read back") {
  const Folder folder;
  const fs::path path = folder.path / "r.json";
  {
    ResultsFile file(path, identity(), false);
    CHECK(file.size() == 0);
    CHECK_FALSE(fs::exists(path));
    put(file, row("01", 512), row("02", 512, Status::incorrect));
    put(file, row("02", 512), row("01", 1024));
  }
  const Json document = Json::parse(slurp(path));
  CHECK(document["schema"] == kResultsSchema);
  CHECK(document["rows"].size() == 3);
  CHECK(document["rows"][1]["status"] == "ok");
  CHECK(folder.entries() == 1);

  const ResultsFile again(path, identity(), false);
  CHECK(again.size() == 3);
  CHECK(again.find(row("01", 1024).key));
  CHECK_FALSE(again.find(row("03", 512).key));
}

TEST_CASE("a row that was only verified keeps the counts of the one that it replaces") {
  const Folder folder;
  ResultsFile file(folder.path / "r.json", identity(), false);
  const RowCounts counts{{"instructions", 7}};
  Row counted = row("01", 512);
  counted.counts = counts;
  counted.bound = RowBound{.card = "h200", .launches = {{.entry = "f"}}};
  counted.lines = {{3, counts}};
  const auto now = [&] { return *file.find(counted.key); };
  put(file, counted);
  put(file, row("01", 512));
  CHECK(now().counts == counts);
  CHECK(now().bound->card == "h200");
  CHECK(now().lines.size() == 1);
  Row other = row("01", 512);
  other.counts = RowCounts{{"instructions", 8}};
  put(file, other);
  CHECK(now().counts == other.counts);
  CHECK_FALSE(now().bound);
  CHECK(now().lines.empty());
  put(file, row("01", 512, Status::incorrect));
  CHECK_FALSE(now().counts);
}

TEST_CASE("inputs are part of a row's key, and absent where they are the usual ones") {
  const Problem problem{.seq_q = 512, .seq_kv = 512};
  Row keyed;
  keyed.key = {.kind = RowKind::rung, .id = "06", .variant = "128x64w4", .problem = problem};
  CHECK(to_json(keyed)["problem"] == to_json(problem));
  RowInputs files;
  files.name = "files";
  for (const RowInputs& inputs : {RowInputs(), RowInputs(InputKind(Distribution::normal, 8)),
                                  RowInputs(InputKind(Distribution::rising)),
                                  RowInputs(InputKind(Distribution::spike, 2)), files}) {
    keyed.key.inputs = inputs;
    CHECK(row_from_json(to_json(keyed)).key == keyed.key);
  }
  CHECK(describe(problem, InputKind(Distribution::rising, 2)) ==
        to_string(problem) + ", rising, spread 2");
  CHECK(describe(problem, {}) == to_string(problem));

  const Folder folder;
  ResultsFile file(folder.path / "r.json", identity(), false);
  Row wide = row("01", 512);
  wide.key.inputs.spread = 4;
  Row rising = row("01", 512);
  rising.key.inputs.name = "rising";
  put(file, row("01", 512), wide);
  put(file, rising, wide);
  CHECK(file.size() == 3);
  REQUIRE(file.find(wide.key));
  CHECK(file.find(wide.key)->key.inputs.spread == 4);
}

TEST_CASE("a peer has one version in a file") {
  const Folder folder;
  ResultsFile file(folder.path / "r.json", identity(), false);
  put(file, row("fa3", 512, Status::unsupported, RowKind::peer, ""),
      row("fa3", 1024, Status::ok, RowKind::peer, ""));
  put(file, row("fa3", 512, Status::ok, RowKind::peer, "flash_attn 3"));
  CHECK(file.size() == 2);
  CHECK_FALSE(file.find(row("fa3", 512, Status::ok, RowKind::peer, "").key));
  put(file, row("01", 512, Status::ok, RowKind::rung, "a"),
      row("01", 512, Status::ok, RowKind::rung, "b"));
  CHECK(file.size() == 4);
}

TEST_CASE("argv may differ between runs of one file; source, device and policy may not") {
  const Folder folder;
  const fs::path path = folder.path / "r.json";
  {
    ResultsFile file(path, identity(), false);
    put(file, row("01", 512));
  }
  const std::string before = slurp(path);
  FileIdentity mine = identity();
  mine.generator["argv"] = {"bench", "06"};
  CHECK(refusal(path, mine).empty());

  mine = identity();
  mine.generator["git_sha"] = "def";
  CHECK(refusal(path, mine).find("git_sha is \"abc\" there and \"def\" now") != std::string::npos);
  mine = identity();
  mine.generator["git_dirty"] = true;
  CHECK(refusal(path, mine).find("git_dirty") != std::string::npos);
  mine = identity();
  mine.device["power_limit"] = 500.0;
  CHECK(refusal(path, mine).find("power_limit") != std::string::npos);
  mine = identity();
  mine.policy["l2"] = "warm";
  CHECK(refusal(path, mine).find("l2") != std::string::npos);
  CHECK(slurp(path) == before);

  mine.policy["l2"] = "warm";
  ResultsFile fresh(path, mine, true);
  CHECK(fresh.size() == 0);
  CHECK(slurp(path) == before);
  put(fresh, row("09", 1));
  CHECK(Json::parse(slurp(path))["rows"].size() == 1);
}

TEST_CASE("a file that is not ours is refused and stays as it was") {
  const Folder folder;
  const fs::path path = folder.path / "r.json";
  const auto [text, words] = GENERATE(table<std::string, std::string>(
      {{"not json at all", "it is not JSON"},
       {"[1, 2]", "it is not a result file"},
       {"{\"schema\": 1}", "it is not a result file"},
       {"{\"schema\": 1, \"rows\": {}}", "it is not a result file"},
       {"{\"schema\": 2, \"rows\": []}", "its schema is 2"},
       {"{\"schema\": 1, \"rows\": [], \"generator\": {}, \"device\": {}}", "it has no 'policy'"},
       {"{\"schema\": 1, \"generator\": {}, \"device\": {}, \"policy\": {}, \"rows\": [{\"kind\": "
        "1}]}",
        "its row 0 is damaged"}}));
  spill(path, text);
  const std::string message = refusal(path, identity());
  CHECK(message.find(words) != std::string::npos);
  CHECK(message.find("--overwrite") != std::string::npos);
  CHECK(slurp(path) == text);
  CHECK(folder.entries() == 1);
}

TEST_CASE("an empty file, as made by mktemp, is a new file") {
  const Folder folder;
  const fs::path path = folder.path / "r.json";
  spill(path, "");
  ResultsFile file(path, identity(), false);
  put(file, row("01", 512));
  CHECK(Json::parse(slurp(path))["rows"].size() == 1);
}

TEST_CASE("a path that cannot be written is known beforehand") {
  const Folder folder;
  for (const fs::path& path :
       {folder.path, folder.path / "none" / "r.json", fs::path("/dev/null")}) {
    CHECK_THROWS_AS(ResultsFile(path, identity(), false), io::FileError);
    CHECK_THROWS_AS(ResultsFile(path, identity(), true), io::FileError);
  }
  CHECK_THROWS_AS(ResultsFile("", identity(), true), io::RefusedFile);
  CHECK_NOTHROW(ResultsFile(folder.path / "r.json", identity(), false));
  CHECK(folder.entries() == 0);
}

TEST_CASE("a file that another run takes over in the meantime is not written") {
  const Folder folder;
  const fs::path path = folder.path / "r.json";
  ResultsFile file(path, identity(), false);
  FileIdentity other = identity();
  other.generator["git_sha"] = "def";
  ResultsFile theirs(path, other, false);
  put(theirs, row("02", 512));
  CHECK_THROWS_AS(put(file, row("01", 512)), ForeignResults);
  CHECK(Json::parse(slurp(path))["rows"][0]["id"] == "02");
}

TEST_CASE("what others have put into the document stays") {
  const Folder folder;
  const fs::path path = folder.path / "r.json";
  {
    ResultsFile file(path, identity(), false);
    put(file, row("01", 512));
  }
  Json document = Json::parse(slurp(path));
  document["comment"] = {"night run"};
  document["device"]["rack"] = 7;
  document["rows"][0]["note"] = "hot";
  spill(path, document.dump());
  ResultsFile file(path, identity(), false);
  put(file, row("02", 512));
  document = Json::parse(slurp(path));
  CHECK(document["comment"] == Json::array({"night run"}));
  CHECK(document["device"]["rack"] == 7);
  CHECK(document["rows"][0]["note"] == "hot");
  CHECK(document["rows"].size() == 2);
}

TEST_CASE("a cache is part of a problem") {
  const Problem problem{.batch = 2,
                        .heads = 8,
                        .seq_q = 1,
                        .seq_kv = 512,
                        .own_kv_heads = 2,
                        .lengths = {0, 512},
                        .page = 16};
  Json json = to_json(problem);
  CHECK(json["kv_heads"] == 2);
  CHECK(problem_from_json(Json::parse(json.dump())) == problem);
  for (const char* name : {"kv_heads", "lengths", "page"}) {
    CHECK_FALSE(to_json(Problem()).contains(name));
  }
  json["kv_heads"] = 8;
  CHECK(problem_from_json(json).own_kv_heads == 0);
  json["kv_heads"] = 3;
  CHECK_THROWS(problem_from_json(json));
}

TEST_CASE("the LSE is part of a problem and of a row's key") {
  const Problem problem{.seq_q = 512, .seq_kv = 512, .lse = true};
  CHECK(to_json(problem)["lse"] == true);
  CHECK(problem_from_json(to_json(problem)) == problem);
  CHECK_FALSE(to_json(Problem()).contains("lse"));
  const Folder folder;
  ResultsFile file(folder.path / "r.json", identity(), false);
  Row with = row("01", 512);
  with.key.problem.lse = true;
  put(file, row("01", 512), with);
  CHECK(file.size() == 2);
}

}  // namespace
}  // namespace fa
