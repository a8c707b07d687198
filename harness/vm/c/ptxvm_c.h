// SPDX-License-Identifier: MIT
/* C interface of the PTX virtual machine (libptxvm_c.so), over the public headers of ptxvm.
 *
 * Structured results are JSON texts in UTF-8. A text that the library returns belongs to the caller
 * and is given back with ptxvm_text_free. A function that can fail returns NULL and stores
 *
 *   {"kind": "parse" | "launch" | "memory" | "internal", "message": ...,
 *    "diagnostics": [{"file", "line", "column", "length", "message", "text", "notes",
 *                     "formatted"}, ...]}
 *
 * in *error. Modules never change: any number of threads may use one.
 */
#ifndef PTXVM_C_H_
#define PTXVM_C_H_

#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(modernize-use-using): C has no other. */

#define PTXVM_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Number of this interface; ptxvm_version() must return it. */
#define PTXVM_VERSION 5

typedef struct ptxvm_module ptxvm_module;

/* A piece of global memory, or a variable of the module: copied into the machine before the launch
 * and, if `written_back`, out of it after a launch without a fault. Memory that is not written back
 * must not change: a launch that changes it is an error. 32 bytes. */
typedef struct ptxvm_buffer {
  const char* name;     /* offset 0: for messages; no two are the same */
  void* data;           /* offset 8 */
  uint64_t bytes;       /* offset 16 */
  int32_t written_back; /* offset 24 */
  uint32_t skew;        /* offset 28: bytes after a multiple of 256 at which it begins, below 256 */
} ptxvm_buffer;

enum { PTXVM_POINTER = 0, PTXVM_VALUE = 1, PTXVM_TENSOR_MAP = 2 };

/* What cuTensorMapEncodeTiled is given; innermost first. 120 bytes. */
typedef struct ptxvm_tensor_map {
  uint32_t element_bytes; /* offset 0 */
  uint32_t rank;          /* offset 4: 1 to 5 */
  uint64_t extents[5];    /* offset 8: elements */
  uint64_t strides[5];    /* offset 48: bytes; [0] is the element size */
  uint32_t box[5];        /* offset 88: elements */
  uint32_t swizzle;       /* offset 108: of 0, 32, 64 or 128 bytes */
  uint32_t element;       /* offset 112: 1 + CUtensorMapDataType, for reductions; 0 unknown;
                             14 and more (of 4 or 6 bits): extents and box have bytes */
} ptxvm_tensor_map;

/* A pointer or a tensor map inside a value. 32 bytes. */
typedef struct ptxvm_pointer {
  uint64_t at;                 /* offset 0: in the value */
  int32_t buffer;              /* offset 8: its index */
  uint64_t offset;             /* offset 16: bytes from the buffer's start */
  const ptxvm_tensor_map* map; /* offset 24: its 128 bytes in place of an address; NULL: none */
} ptxvm_pointer;

/* What a launch reads and writes. 24 bytes. */
typedef struct ptxvm_memory {
  const ptxvm_buffer* buffers;   /* offset 0 */
  const ptxvm_buffer* variables; /* offset 8: their names are those of the PTX */
  int32_t n_buffers;             /* offset 16 */
  int32_t n_variables;           /* offset 20 */
} ptxvm_memory;

/* One kernel argument. 56 bytes. */
typedef struct ptxvm_argument {
  int32_t kind;                  /* offset 0: PTXVM_POINTER, PTXVM_VALUE or PTXVM_TENSOR_MAP */
  int32_t buffer;                /* offset 4: pointer, tensor map: index of the buffer */
  uint64_t offset;               /* offset 8: pointer, tensor map: bytes from the buffer's start */
  const void* value;             /* offset 16: value: its bytes */
  uint64_t value_bytes;          /* offset 24 */
  const ptxvm_tensor_map* map;   /* offset 32: tensor map */
  const ptxvm_pointer* pointers; /* offset 40: value: what is written into it */
  int32_t n_pointers;            /* offset 48 */
} ptxvm_argument;

/* A launch as the host writes it between <<< and >>>, and how it is watched. 136 bytes. */
typedef struct ptxvm_launch_config {
  uint32_t grid[3];             /* offset 0 */
  uint32_t block[3];            /* offset 12: threads */
  uint32_t cluster[3];          /* offset 24: blocks */
  uint32_t shared_bytes;        /* offset 36: dynamic shared memory of a block */
  int32_t threads;              /* offset 40: of the host; 0: all cores */
  int32_t reversed;             /* offset 44: warps and resident blocks take turns last to first */
  int32_t checkers;             /* offset 48: watch for races, copies never waited for, ... */
  int32_t traced;               /* offset 52: number of blocks in the trace */
  const uint32_t* trace_blocks; /* offset 56: their linear indices */
  uint64_t max_warp_steps;      /* offset 64: instructions of a warp before it is stopped; 0: as
                                   the machine has it */
  const char* const* ignored;   /* offset 72: checkers whose findings are left out */
  int32_t n_ignored;            /* offset 80 */
  int32_t comments;             /* offset 84: findings that a comment excuses are left out too:
                                   `// ptxvm: ignore race` */
  const char* card;     /* offset 88: what the launch is for: "h200"; NULL: as the machine has it */
  uint64_t max_steps;   /* offset 96: of all warps together; 0: as the machine has it */
  int32_t cooperative;  /* offset 104: all blocks are resident at once */
  int32_t global_races; /* offset 108: watch global memory too, over the whole grid */
  uint32_t registers;   /* offset 112: of a thread; 0: not known */
  const uint8_t* stop;  /* offset 120: another thread ends the launch by writing 1 here, which is an
                           error of the kind "launch"; NULL: nobody does */
  uint64_t max_local_bytes; /* offset 128: local memory of all threads at once; 0: as the machine
                               has it */
} ptxvm_launch_config;

/* PTXVM_VERSION of the library. */
PTXVM_API int32_t ptxvm_version(void);

/* Reads a module. `file_name` is used in messages only. */
PTXVM_API ptxvm_module* ptxvm_module_parse(const char* text, uint64_t bytes, const char* file_name,
                                           char** error);
PTXVM_API void ptxvm_module_free(ptxvm_module* module);

/* {"file", "target", "version", "variables": [{"name", "readable", "space", "bytes"}],
 * "kernels": [{"name", "readable", "parameters": [{"name", "type", "offset",
 * "bytes", "align"}], "shared_bytes", "uses_dynamic_shared", "local_bytes", "instructions",
 * "max_threads", "required_threads", "required_cluster", "errors", "unsupported": [diagnostic]}]};
 * extents are [x, y, z] or null. */
PTXVM_API char* ptxvm_module_describe(const ptxvm_module* module, char** error);

/* The name of the one kernel that `wanted` may mean: a name, a demangled name or a part of one; the
 * only kernel where `wanted` is empty. */
PTXVM_API char* ptxvm_module_find(const ptxvm_module* module, const char* wanted, char** error);

/* Copies the first contents of a variable to `data`, and returns its name. */
PTXVM_API char* ptxvm_module_variable(const ptxvm_module* module, const char* name, void* data,
                                      uint64_t bytes, char** error);

/* Runs a kernel to its end or its first fault. The result is
 * {"steps", "printed", "fault": null | {"kind", "message", "block", "warp", "lane", "diagnostic"},
 *  "findings": [{"checker", "severity", "message", "count", "diagnostic"}], "suppressed": number,
 *  "hints": [{"section", "message", "share", "file", "line"}], "counts": {name: number},
 * "by_instruction": [{"line", "opcode", "source": [{"file", "line"}], "counts"}], "by_source":
 * [{"file", "line", "counts"}]}; counts that are 0 are left out. With traced blocks and a `trace`,
 * *trace is the trace, JSON for https://ui.perfetto.dev. */
PTXVM_API char* ptxvm_launch(const ptxvm_module* module, const char* entry,
                             const ptxvm_launch_config* config, const ptxvm_memory* memory,
                             const ptxvm_argument* arguments, int32_t n_arguments, char** trace,
                             char** error);

PTXVM_API void ptxvm_text_free(char* text);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif /* PTXVM_C_H_ */
