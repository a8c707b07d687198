#include "harness/cli/command.h"

int main(int argc, char** argv) {
  return static_cast<int>(fa::cli::run_command_line({argv + 1, argv + argc}));
}
