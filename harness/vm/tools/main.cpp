// ptxvm: the machine from the command line.
#include "tools/commands.h"

int main(int argc, char** argv) {
  return ptxvm::tools::run({argv + 1, argv + argc});
}
