#include "harness/cli/app.h"

int main(int argc, char** argv) {
  return static_cast<int>(fa::cli::run_fa({argv + 1, argv + argc}));
}
