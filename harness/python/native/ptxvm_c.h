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
#define PTXVM_VERSION 1

typedef struct ptxvm_module ptxvm_module;

/* A piece of global memory: copied into the machine before the launch and, if `written_back`, out
 * of it after a launch without a fault. 32 bytes. */
typedef struct ptxvm_buffer {
  const char* name;     /* offset 0: for messages; no two are the same */
  void* data;           /* offset 8 */
  uint64_t bytes;       /* offset 16 */
  int32_t written_back; /* offset 24 */
} ptxvm_buffer;

enum { PTXVM_POINTER = 0, PTXVM_VALUE = 1, PTXVM_TENSOR_MAP = 2 };

/* What cuTensorMapEncodeTiled is given; innermost first. 112 bytes. */
typedef struct ptxvm_tensor_map {
  uint32_t element_bytes; /* offset 0 */
  uint32_t rank;          /* offset 4: 1 to 5 */
  uint64_t extents[5];    /* offset 8: elements */
  uint64_t strides[5];    /* offset 48: bytes; [0] is the element size */
  uint32_t box[5];        /* offset 88: elements */
  uint32_t swizzle;       /* offset 108: of 0, 32, 64 or 128 bytes */
} ptxvm_tensor_map;

/* One kernel argument. 40 bytes. */
typedef struct ptxvm_argument {
  int32_t kind;                /* offset 0: PTXVM_POINTER, PTXVM_VALUE or PTXVM_TENSOR_MAP */
  int32_t buffer;              /* offset 4: pointer, tensor map: index of the buffer */
  uint64_t offset;             /* offset 8: pointer, tensor map: bytes from the buffer's start */
  const void* value;           /* offset 16: value: its bytes */
  uint64_t value_bytes;        /* offset 24 */
  const ptxvm_tensor_map* map; /* offset 32: tensor map */
} ptxvm_argument;

/* A launch as the host writes it between <<< and >>>, and how it is watched. 72 bytes. */
typedef struct ptxvm_launch_config {
  uint32_t grid[3];             /* offset 0 */
  uint32_t block[3];            /* offset 12: threads */
  uint32_t cluster[3];          /* offset 24: blocks */
  uint32_t shared_bytes;        /* offset 36: dynamic shared memory of a block */
  int32_t threads;              /* offset 40: of the host; 0: all cores */
  int32_t reversed;             /* offset 44: warps and blocks take their turns last to first */
  int32_t checkers;             /* offset 48: watch for races, copies never waited for, ... */
  int32_t traced;               /* offset 52: number of blocks in the trace */
  const uint32_t* trace_blocks; /* offset 56: their linear indices */
  uint64_t max_warp_steps;      /* offset 64: instructions of a warp before it is stopped; 0: as
                                   the machine has it */
} ptxvm_launch_config;

/* PTXVM_VERSION of the library. */
PTXVM_API int32_t ptxvm_version(void);

/* Reads a module. `file_name` is used in messages only. */
PTXVM_API ptxvm_module* ptxvm_module_parse(const char* text, uint64_t bytes, const char* file_name,
                                           char** error);
PTXVM_API void ptxvm_module_free(ptxvm_module* module);

/* {"file", "target", "version", "kernels": [{"name", "parameters": [{"name", "type", "offset",
 * "bytes", "align"}], "shared_bytes", "uses_dynamic_shared", "local_bytes", "instructions",
 * "max_threads", "required_threads", "required_cluster", "unsupported": [diagnostic]}]}; extents
 * are [x, y, z] or null. */
PTXVM_API char* ptxvm_module_describe(const ptxvm_module* module, char** error);

/* Runs a kernel to its end or its first fault. The result is
 * {"steps", "fault": null | {"kind", "message", "block", "warp", "lane", "diagnostic"},
 *  "findings": [{"checker", "message", "count", "diagnostic"}],
 *  "counts": {name: number}, "by_instruction": [{"line", "opcode", "source": [{"file", "line"}],
 *  "counts"}], "by_source": [{"file", "line", "counts"}]}; counts that are 0 are left out. With
 * traced blocks and a `trace`, *trace is the trace, JSON for https://ui.perfetto.dev. */
PTXVM_API char* ptxvm_launch(const ptxvm_module* module, const char* entry,
                             const ptxvm_launch_config* config, const ptxvm_buffer* buffers,
                             int32_t n_buffers, const ptxvm_argument* arguments,
                             int32_t n_arguments, char** trace, char** error);

PTXVM_API void ptxvm_text_free(char* text);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif /* PTXVM_C_H_ */
