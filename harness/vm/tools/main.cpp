// SPDX-License-Identifier: MIT
// ptxvm: the machine from the command line.
#include "io/file.h"
#include "tools/commands.h"

int main(int argc, char** argv) {
  ptxvm::io::prepare_process();
  return ptxvm::tools::run({argv + 1, argv + argc});
}
