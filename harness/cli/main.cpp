// SPDX-License-Identifier: MIT
#include "harness/cli/app.h"
#include "harness/io/file.h"

int main(int argc, char** argv) {
  fa::io::prepare_process();
  return static_cast<int>(fa::cli::run_fa({argv + 1, argv + argc}));
}
