// SPDX-License-Identifier: MIT
#include "web/answer.h"

#include <exception>
#include <new>

#include "web/launch.h"
#include "web/texts.h"

namespace ptxvm::web {
namespace {

Json guarded(const std::string& text, const Report& progress,
             const std::function<Json(const Json&)>& others) {
  try {
    const Json request = Json::parse(text);
    const std::string what = request.at("do");
    if (what == "load") return load(request);
    if (what == "launch") return launch_any(request, progress);
    return others(request);
  } catch (const Error& error) {
    return {{"error", error.what()}, {"diagnostics", diagnostics_json(error.diagnostics())}};
  } catch (const std::bad_alloc&) {
    return {{"error", "the page has no memory left for this"}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

std::string answer(const std::string& request, const Report& progress,
                   const std::function<Json(const Json&)>& others) {
  using Text = nlohmann::detail::error_handler_t;
  return guarded(request, progress, others).dump(-1, ' ', false, Text::replace);
}

}  // namespace ptxvm::web
