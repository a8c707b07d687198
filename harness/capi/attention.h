// SPDX-License-Identifier: MIT
/* C interface of libfa.so to one pass, forward or backward, for the Python package flash_ladder.
 *
 * q and o are [batch, heads, seq_q, head_dim], k and v [batch, kv_heads, seq_kv, head_dim], or
 * pages of them: contiguous, or at the problem's strides. Of a packed batch, whose problem has
 * query_lengths, they are [1, heads, rows, head_dim] with the rows of all batch entries. Gradients
 * have the shapes of their tensors, and strides of their own where the problem gives 24. A problem
 * is JSON with the keys that it has in a result file; one that the library does not know is
 * refused. Nothing here synchronises or throws, and only scratch whose address is NULL allocates
 * device memory. A function that can fail returns one of FA_STATUS_*; its message is stored
 * NUL-terminated in `size` bytes at `message`.
 */
#ifndef FA_HARNESS_CAPI_ATTENTION_H_
#define FA_HARNESS_CAPI_ATTENTION_H_

#include <stdint.h>

/* NOLINTBEGIN(modernize-use-using): C has no other. */

#define FA_ATTENTION_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Number of this interface; fa_attention_version() must return it. */
#define FA_ATTENTION_VERSION 8

/* The exit codes of fa. */
enum {
  FA_STATUS_OK = 0,
  FA_STATUS_WRONG = 1,       /* the kernel did what no correct kernel does */
  FA_STATUS_REFUSED = 2,     /* the rung does not take this problem, or there is no such rung */
  FA_STATUS_ENVIRONMENT = 3, /* no GPU, no memory, no PTX, the launch failed */
};

/* Where a problem's tensors are. What it does not have is NULL. 120 bytes.
 * A backward pass reads o and lse, which a forward pass writes, and writes d_q, d_k and d_v. */
typedef struct fa_attention_tensors {
  const void* q;             /* offset 0 */
  const void* k;             /* offset 8 */
  const void* v;             /* offset 16 */
  void* o;                   /* offset 24 */
  float* lse;                /* offset 32: [batch, heads, seq_q]; packed: [heads, rows] */
  const int32_t* lengths;    /* offset 40: those of the problem; the machine reads these there */
  const int32_t* page_table; /* offset 48: [batch, seq_kv / page rounded up], below pages */
  const float* kv_scales;    /* offset 56: [2, batch, kv_heads], of k, then of v */
  const float* sinks;        /* offset 64: [heads] */
  /* Of a packed batch: the first row of each sequence, then the number of rows, [batch + 1]. The
   * launch takes from the problem's lengths only their number, their sums and their greatest; the
   * machine reads them there. */
  const int32_t* cu_seqlens_q; /* offset 72: of q and o */
  const int32_t* cu_seqlens_k; /* offset 80: of k and v */
  const void* d_o;             /* offset 88: the gradient of o */
  void* d_q;                   /* offset 96 */
  void* d_k;                   /* offset 104 */
  void* d_v;                   /* offset 112 */
} fa_attention_tensors;

/* What a rung does for one problem on one GPU. Never changes: any number of threads may launch it
 * at a time, each with scratch memory of its own. */
typedef struct fa_attention_plan fa_attention_plan;

/* FA_ATTENTION_VERSION of the library. */
FA_ATTENTION_API int32_t fa_attention_version(void);

/* The ids of all rungs in ladder order: "a0,a1,...". */
FA_ATTENTION_API const char* fa_attention_rungs(void);

/* Plans `rung` ("06", "6", "06_batched", "batched") on the GPU with this ordinal, loads its code
 * and stores the plan in *plan. */
FA_ATTENTION_API int32_t fa_attention_plan_make(const char* problem, const char* rung,
                                                int32_t device, fa_attention_plan** plan,
                                                char* message, int32_t size);
FA_ATTENTION_API void fa_attention_plan_free(fa_attention_plan* plan);

/* Device memory that each launch needs besides its tensors: the number of scratch buffers, and of
 * one of them the bytes and whether it must hold zeros. Every launch leaves zeros behind in such a
 * buffer. Its address may be NULL: then the library has one for each stream, which is right unless
 * the launch is captured into a graph, whose replays may run beside other work of that stream. */
FA_ATTENTION_API int32_t fa_attention_scratch_count(const fa_attention_plan* plan);
FA_ATTENTION_API void fa_attention_scratch(const fa_attention_plan* plan, int32_t index,
                                           int64_t* bytes, int32_t* zeroed);

/* Enqueues the plan on `stream`, a cudaStream_t of the plan's device, and returns at once. The
 * addresses of q, k, v, o and of their gradients are multiples of 16; nobody looks at the values
 * of page_table, and one out of range reads what is no key; `scratch` has one address for each
 * scratch buffer, or is NULL where none is needed. The plan's device becomes the current one of
 * this thread. */
FA_ATTENTION_API int32_t fa_attention_launch(const fa_attention_plan* plan,
                                             const fa_attention_tensors* tensors,
                                             void* const* scratch, void* stream, char* message,
                                             int32_t size);

/* Runs `rung` in the PTX virtual machine, with its checkers, on arrays in host memory, after it has
 * looked at the values of page_table. `ptx_folder` holds the PTX of the rungs; NULL:
 * FA_PTX_DIR, else the folder of the build. Returns when the result is there, or soon after another
 * thread has written 1 to *stop, with FA_STATUS_ENVIRONMENT; NULL: nobody does. */
FA_ATTENTION_API int32_t fa_attention_run_on_machine(const char* problem, const char* rung,
                                                     const char* ptx_folder,
                                                     const fa_attention_tensors* tensors,
                                                     const uint8_t* stop, char* message,
                                                     int32_t size);

/* Whether the machine takes the problem with this rung, as fa_attention_run_on_machine would, and
 * whether there is memory for it. */
FA_ATTENTION_API int32_t fa_attention_machine_takes(const char* problem, const char* rung,
                                                    char* message, int32_t size);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif /* FA_HARNESS_CAPI_ATTENTION_H_ */
