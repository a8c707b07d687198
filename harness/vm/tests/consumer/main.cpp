#include <ptxvm/ptxvm.h>

#include <iostream>

int main(int, char** words) {  // counts FILE.ptx ENTRY: from 1024 floats to 1024 others
  const ptxvm::Module module = ptxvm::Module::load(words[1]);
  const std::vector<float> ones(1024, 1.0f);
  ptxvm::Memory memory;
  const auto in = memory.upload("in", std::as_bytes(std::span(ones)));
  const auto out = memory.allocate("out", sizeof(float) * ones.size());
  ptxvm::LaunchConfig config{.grid = {8}, .block = {128}};
  config.arguments = {ptxvm::Argument::pointer(in), ptxvm::Argument::pointer(out)};
  ptxvm::Counters counters;
  ptxvm::Races races;
  const auto result = launch(module, words[2], config, memory, {.observers = {&counters, &races}});
  if (result.fault) std::cout << result.fault->format() << '\n';
  for (const ptxvm::Finding& finding : result.findings) std::cout << format(finding) << '\n';
  std::cout << format(counters.report().total);
  std::cout << reinterpret_cast<const float*>(memory.bytes(out).data())[0] << " in out[0]\n";
}
